"""The plain loop that every sweep is compared with: one hook and one forward for each cell."""

import torch


def plain_loop(model, call, modules, new, indices, metric):
    """(sites, cells, rows): `new(number, value)` gives values, `indices[number]` where they go."""
    found = []
    with torch.no_grad():
        for number, module in enumerate(modules):
            row = []
            for index in indices[number]:

                def patch(_m, _a, out, number=number, index=index):
                    whole = out if isinstance(out, torch.Tensor) else out[0]
                    changed = whole.clone()
                    changed[index] = new(number, whole)[index]
                    return changed if isinstance(out, torch.Tensor) else (changed, *out[1:])

                handle = module.register_forward_hook(patch)
                row.append(metric(call(model)))
                handle.remove()
            found.append(torch.stack(row))
    return torch.stack(found)


def outputs(model, call, modules):
    """What modules return in one forward; of a tuple, its first."""
    kept = []
    handles = [
        module.register_forward_hook(
            lambda _m, _a, out: kept.append(out if isinstance(out, torch.Tensor) else out[0])
        )
        for module in modules
    ]
    with torch.no_grad():
        call(model)
    for handle in handles:
        handle.remove()
    return [value.clone() for value in kept]
