"""The run folder: what training leaves behind, written so that a kill or a power cut loses nothing that was saved.

Read the files in this order: durable, state_tree, tensor_file, model_files, checkpoints, metrics, run_folder.

In: facts, events, tensors.  Out: files, and back.  Used by: train, load, convert, the command line.
Read next: durable.py.
"""

from pellucid.checkpoint.checkpoints import Checkpoint, CheckpointInfo
from pellucid.checkpoint.durable import sha256_of, write_durably
from pellucid.checkpoint.model_files import (
    empty_model,
    in_memory,
    model_outline,
    read_config,
    read_model,
    write_model,
)
from pellucid.checkpoint.run_folder import RunFolder
from pellucid.checkpoint.stored_tensors import StoredTensors
from pellucid.checkpoint.tensor_file import (
    load_weights,
    plain_names,
    read_tensors,
    refuse_foreign_weights,
    refuse_what_is_no_number,
    write_tensors,
)

__all__ = [
    "Checkpoint",
    "CheckpointInfo",
    "RunFolder",
    "StoredTensors",
    "empty_model",
    "in_memory",
    "load_weights",
    "model_outline",
    "plain_names",
    "read_config",
    "read_model",
    "read_tensors",
    "refuse_foreign_weights",
    "refuse_what_is_no_number",
    "sha256_of",
    "write_durably",
    "write_model",
    "write_tensors",
]
