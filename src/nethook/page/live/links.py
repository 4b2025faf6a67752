"""Where names lead on the page: to addresses of its views."""

from __future__ import annotations

from nethook.figures.reading import Reading
from nethook.page.urls import link, run_link, site_link
from nethook.runs import names


class LiveLinks:
    """The addresses of one run's views.

    Arguments:
        run: the id of the run.
        reading: the run.
    """

    def __init__(self, run: str, reading: Reading) -> None:
        self._run = run
        self._reading = reading

    def layer(self, address: str, **query: object) -> str:
        """To a layer, or to the layer whose parameter this is; "" where it is neither."""
        owner, reading = address, self._reading
        if not reading.has(address, names.OUTPUTS):
            owners = reading.order.info(address).get("owners")
            own = owners if isinstance(owners, list) and owners else [address.rpartition(".")[0]]
            owner = str(own[0])
            if not reading.has(owner, names.OUTPUTS):
                return ""
        return site_link(self._run, owner, **query)

    def finding(self, anchor: str) -> str:
        """To a finding in the view of findings."""
        return run_link(self._run, "findings", n=anchor.rpartition("-")[2])

    def view(self, name: str, **query: object) -> str:
        """To a view of the run; `fine` is where finer numbers of its curves are."""
        if name == "fine":
            return link("/fine", run=self._run, **query)
        return run_link(self._run, name, **query)
