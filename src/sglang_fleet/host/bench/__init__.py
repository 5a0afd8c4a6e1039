"""`sglang-fleet bench` on a host: SGLang's own `bench_serving` against the release that runs here."""
