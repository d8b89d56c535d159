"""Detectors in a network: processes that carry them and talk only through a broker (distribution-opera.md, section 6)."""
