"""Find the transaction of each event among the END markers, which come in the same order. Pure."""

from collections.abc import Iterable, Iterator

from cdc.derive.log.event import Transaction
from cdc.events.transactions import Marker


class Ends:
    """Reads the END markers of a slice as far as its events need them.

    Only those of transactions with events of ``topic`` are kept, and of these only the ones at and
    behind the last event: a slice may have millions.
    """

    def __init__(self, markers: Iterable[Marker], topic: str) -> None:
        """Take the END markers in the order of their offsets."""
        self._markers: Iterator[Marker] = (one for one in markers if topic in one.counts)
        self._found: dict[int, Transaction] = {}

    def of(self, txids: Iterable[int | None]) -> dict[int, Transaction]:
        """Return the transactions of the next events; those whose END is not there are left out."""
        wanted = [txid for txid in dict.fromkeys(txids) if txid is not None]
        self._read_to(wanted)
        mine = {txid: self._found[txid] for txid in wanted if txid in self._found}
        if mine:
            self._drop_before(list(mine)[-1])
        return mine

    def _read_to(self, wanted: list[int]) -> None:
        """Read markers until the last transaction is found; its END is behind all others."""
        while wanted and wanted[-1] not in self._found:
            marker = next(self._markers, None)
            if marker is None:
                return
            found = Transaction(marker.txid, marker.lsn, marker.committed_at)
            self._found[marker.txid] = found

    def _drop_before(self, txid: int) -> None:
        lsn = self._found[txid].lsn
        self._found = {n: one for n, one in self._found.items() if one.lsn >= lsn}
