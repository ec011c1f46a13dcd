"""How weights are moved: Muon for matrices, AdamW for the rest, on a schedule, with bounded gradients.

In: gradients.  Out: updated weights.  Used by: train, cs336.  Read in this order: adamw, sharded, muon, schedule,
groups, model_optimizer, ema, clipping.
"""

from pellucid.optim.adamw import AdamW
from pellucid.optim.clipping import clip_gradients, global_norm
from pellucid.optim.ema import WeightAverage
from pellucid.optim.groups import ParameterGroup, fused_slices, parameter_groups
from pellucid.optim.model_optimizer import ModelOptimizer, build_optimizer
from pellucid.optim.muon import Muon, orthogonalise, update_factor
from pellucid.optim.schedule import constant, cosine, learning_rate_fraction, trapezoid
from pellucid.optim.sharded import cut_like, whole_state

__all__ = [
    "AdamW",
    "ModelOptimizer",
    "Muon",
    "ParameterGroup",
    "WeightAverage",
    "build_optimizer",
    "clip_gradients",
    "constant",
    "cosine",
    "cut_like",
    "fused_slices",
    "global_norm",
    "learning_rate_fraction",
    "orthogonalise",
    "parameter_groups",
    "trapezoid",
    "update_factor",
    "whole_state",
]
