"""Every topology by its name."""

from __future__ import annotations

from mininet_topos.topology.base import LabTopo
from mininet_topos.topology.dumbbells import ActsT1, AdalrHybrid, HalfT1, HtsGeo, Italsat, Leo
from mininet_topos.topology.shared import (
    AdalrFairness,
    Henderson1,
    Henderson2,
    Henderson3,
    HendersonTestbed,
)

TOPOLOGIES: dict[str, type[LabTopo]] = {
    "acts_t1": ActsT1,
    "half_t1": HalfT1,
    "italsat": Italsat,
    "henderson1": Henderson1,
    "henderson2": Henderson2,
    "henderson3": Henderson3,
    "henderson_testbed": HendersonTestbed,
    "adalr": AdalrHybrid,
    "adalr_fairness": AdalrFairness,
    "hts_geo": HtsGeo,
    "leo": Leo,
}
