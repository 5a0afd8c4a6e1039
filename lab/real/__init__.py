"""SGLang itself on lab hosts, without a GPU: wheels for their package index, and a model that it can serve.

What it takes is downloaded and built when a lab is brought up with it (`Lab.up(with_real=True)`), and never otherwise.
`index` fills the folder that the lab's server offers below /real/; `wheels` builds what no index has for a machine
without a GPU; `model` makes the model folder of every host.
"""
