"""Python runs this at its start, in the real SGLang's processes only.

The index has torchvision built for CUDA. Beside a torch without CUDA its operators do not exist, and registering their
shapes fails; nothing else of it needs them. So the module that registers them is there, and empty.
"""

import sys
from types import ModuleType

sys.modules["torchvision._meta_registrations"] = ModuleType("torchvision._meta_registrations")
