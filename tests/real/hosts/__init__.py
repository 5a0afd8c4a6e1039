"""SGLang itself on two lab hosts. A package, so that its hosts go when its last test is over."""
