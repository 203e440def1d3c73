"""The record as lines of JSON; docs/nki.md describes them."""

from __future__ import annotations

import functools
import gzip
import json
from typing import Any, Dict, List, Tuple

from .recorder import Body, Ins, Operand, Recorder, Repeat
from .symbols import Number, Sym
from .tiles import HBM, Storage

VERSION = 1
dumps = functools.partial(json.dumps, separators=(",", ":"))


class Writer:
    """Collects the lines of one record."""

    def __init__(self, r: Recorder, head: Dict[str, Any]) -> None:
        self.r = r
        self.lines: List[str] = []
        self.forms: Dict[Tuple[Any, ...], int] = {}
        self.files: Dict[str, int] = {}
        self.tensors: Dict[int, int] = {}
        self.head = head
        self.body: List[str] = []

    def write(self, path: str) -> int:
        """Write the record; a path that ends in .gz is compressed. Return the number of instructions recorded."""
        r = self.r
        programs = r.programs or [((), 0, r.root)]
        for ids, core, body in programs:
            self.body.append(dumps(["p", core, list(ids)]))
            self._body(body)
        head = dict(self.head, perfsim_nki=VERSION, generation=r.generation, kernel=r.kernel, grid=list(r.grid), files=list(self.files))
        lines = [dumps(head)] + self.lines + self.body
        for text, n in sorted(r.notes.items()):
            lines.append(dumps(["n", text, n]))
        lines.append(dumps(["z", r.count]))
        data = ("\n".join(lines) + "\n").encode()
        if path.endswith(".gz"):
            with open(path, "wb") as f:
                with gzip.GzipFile("", "wb", 6, f, 0) as z:
                    z.write(data)
        else:
            with open(path, "wb") as f:
                f.write(data)
        return r.count

    def _file(self, name: str) -> int:
        return self.files.setdefault(name, len(self.files))

    def _tensor(self, s: Storage) -> int:
        k = self.tensors[s.id] = len(self.tensors)
        loop = -1
        if s.body is not None and s.body.loop is not None and s.body.closed:
            loop = s.body.loop.id
        lay = s.layout
        if lay.text is None:
            lay.text = '"%s","%s",%s,%d' % (s.dtype.name, s.mem, dumps(lay.shape), lay.pdim)
        site = dumps([self._file(s.line[0]), s.line[1]]) if s.line else "null"
        name, addr = dumps(s.name) if s.name else '""', dumps(s.addr) if s.addr is not None else "null"
        fill = -1 if s.fill is None else s.fill
        self.lines.append('["t",%d,%s,%s,"%s",%d,%d,%s,%s]' % (k, name, lay.text, s.kind, loop, fill, site, addr))
        return k

    def _form(self, i: Ins) -> int:
        key = (i.op, i.engine, i.attrs, i.site, tuple([o.form for o in i.outs]), tuple([o.form for o in i.ins]))
        k = self.forms.get(key)
        if k is None:
            k = self.forms[key] = len(self.forms)
            row = ["f", k, i.op, i.engine, dict(i.attrs), self._file(i.site[0]), i.site[1], key[4], key[5]]
            self.lines.append(dumps(row))
        return k

    def _number(self, x: Number) -> str:
        if type(x) is Sym:
            out = [x.c]
            for loop, k in x.t:
                out += [loop.id, k]
            return "[" + ",".join(map(str, out)) + "]"
        return str(x)

    def _operand(self, o: Operand, out: List[str]) -> None:
        s = o.s
        k = self.tensors.get(s.id)
        if k is None:
            k = self._tensor(s)
        b, p, f = o.b, o.p, o.f
        if type(b) is int and type(p) is int and type(f) is int:
            out.append("%d,%d" % (k, f) if s.mem == HBM else "%d,%d,%d,%d" % (k, b, p, f))
        elif s.mem == HBM:
            out.append("%d,%s" % (k, self._number(f)))
        else:
            out.append("%d,%s,%s,%s" % (k, self._number(b), self._number(p), self._number(f)))

    def _body(self, body: Body) -> None:
        add = self.body.append
        for item in body.items:
            if isinstance(item, Repeat):
                add('["l",%d,%d]' % (item.loop.id, item.loop.trips))
                self._body(item.body)
                add('["e"]')
                continue
            parts = [str(self._form(item))]
            for o in item.outs:
                self._operand(o, parts)
            for o in item.ins:
                self._operand(o, parts)
            add("[" + ",".join(parts) + "]")
