"""`from_pretrained` of transformers where the weights are not on this machine: a model of its config.json, with weights of the right sizes.

A dry run has no connection, and a large checkpoint is often fetched by the job itself. Weights are loaded, placed and
quantised as those of a checkpoint would be.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from .dispatch import PLAIN_META
from .events import WEIGHT
from .import_hooks import ImportHooks
from .patches import Patches
from .quiet import unseen
from .storages import HOST

if TYPE_CHECKING:
    from .session import Session


def install(session: "Session", patches: Patches, hooks: ImportHooks) -> None:
    hooks.when_imported("transformers.modeling_utils", lambda module: _without_weights(session, patches, module))


def _without_weights(session: "Session", patches: Patches, module: ModuleType) -> None:
    resolve = getattr(module, "_get_resolved_checkpoint_files", None)
    load = getattr(module.PreTrainedModel, "_load_pretrained_model", None)
    if resolve is None or load is None:
        return  # an older transformers: it says that the file is missing

    def resolve_if_there(*args: Any, **kwargs: Any) -> Any:
        try:
            return resolve(*args, **kwargs)
        except OSError:
            name = kwargs.get("pretrained_model_name_or_path", args[0] if args else "the model")
            session.trace.note(f"the weights of {name} are not on this machine: their sizes are those of its config.json.")
            return None, None

    def load_if_there(model: Any, state_dict: Any, checkpoint_files: Any, *args: Any, **kwargs: Any) -> Any:
        if state_dict is None and checkpoint_files is None:
            state_dict = {name: _stand_in(session, tensor) for name, tensor in model.state_dict().items()}
        return load(model, state_dict, checkpoint_files, *args, **kwargs)

    patches.set(module, "_get_resolved_checkpoint_files", resolve_if_there)
    patches.set(module.PreTrainedModel, "_load_pretrained_model", staticmethod(load_if_there))


def _stand_in(session: "Session", tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of a file, in host memory."""
    with unseen(), session.view.requesting(PLAIN_META):
        stand_in = torch.empty(tensor.shape, dtype=tensor.dtype, device="meta")
        session.storages.follow(stand_in, HOST, WEIGHT)
    return stand_in
