"""reprl: reinforcement learning whose policies replicate on fresh data.

Public names are listed in ``__init__.pyi`` and loaded when they are first used, so that ``import reprl`` and
``reprl --help`` cost next to nothing.
"""

import lazy_loader

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
