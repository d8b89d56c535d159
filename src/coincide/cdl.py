"""What an installation adds to CDL: providers of look-ups, node context, predicates. Register before rules are loaded.

>>> from coincide.cdl import register_provider, table
>>> register_provider("badges", table([{"badge": "b17", "physician": "Jones"}], key="badge"))
"""

from coincide.lang.cdl.functions import forget_predicate, register_predicate
from coincide.lang.cdl.providers import forget_providers, register_context, register_provider
from coincide.lang.cdl.tables import table

__all__ = ["forget_predicate", "forget_providers", "register_context", "register_predicate", "register_provider", "table"]
