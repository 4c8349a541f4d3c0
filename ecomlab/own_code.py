"""Import classes and functions from a file of the user, named as FILE.py:NAME."""

import hashlib
import importlib.util
import inspect
import re
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from ecomlab.suggest import raised, unknown


def is_named(text: str) -> bool:
    """Tell whether a text names something in a file, as "mine.py:Mine" does."""
    return re.fullmatch(r".+\.py:\w+", text) is not None


def file_of(text: str) -> Path:
    """Find the file of FILE.py:NAME; a relative one lies in the working directory or in a folder above it. Raises
    ValueError."""
    path = Path(text.rpartition(":")[0]).expanduser()
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / path).is_file():
            return folder / path
    raise ValueError(f"no file {path}, here or in a folder above; check its name")


def named(text: str) -> Any:
    """Import what FILE.py:NAME names; a file is imported once for each content. Raises ValueError."""
    path, name = file_of(text), text.rpartition(":")[2]
    module_name = f"ecomlab_own_{path.stem}_{hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest()}"
    found = vars(sys.modules.get(module_name) or imported(path, module_name))
    if name not in found:
        known = [one for one, value in found.items() if callable(value) and not one.startswith("_")]
        raise ValueError(f"{path}: {unknown('class or function', name, known)}")
    return found[name]


def imported(path: Path, name: str) -> ModuleType:
    """Run a Python file as the module `name`, beside files that it may import. Raises ValueError."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is not a Python file; name one that ends in .py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.absolute().parent))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ValueError(f"{path} cannot be imported: {raised(error)}") from error
    finally:
        sys.path.remove(str(path.absolute().parent))
    return module


def plain(call: Any) -> Any:
    """Unwrap partial functions and decorators."""
    while isinstance(call, partial):
        call = call.func
    return inspect.unwrap(call)


def source_of(thing: Any) -> str:
    """Read the source of a class, a function, or an object's class; "" where there is none to read."""
    try:
        return inspect.getsource(plain(thing if callable_itself(thing) else type(thing)))
    except (OSError, TypeError):
        return ""


def callable_itself(thing: Any) -> bool:
    """Tell whether something is a class or a function, also a partial one, and not an object of a class."""
    return isinstance(thing, type | partial) or inspect.isroutine(thing)
