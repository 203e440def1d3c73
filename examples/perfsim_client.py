"""Client of `perfsim serve`, in one file and with the standard library only.

    with Client.start(root="kernels") as c:            # own process, JSON lines
        print(c.predict(path="mm.bir.json")["latency_ns"])

    c = Client("http://127.0.0.1:8080")                # a server that runs
    held = c.predict(open("mm.bir.json", "rb").read(), machine="trn2")
    for ns in (500, 1000, 2000):
        r = c.predict(module_id=held["module_id"],
                      changes=[{"instruction": "I-7", "latency_ns": ns}])

Answers are dictionaries with the keys of `perfsim run --json` and so on; GET
/openapi.json describes them. A refused request raises PerfsimError. Python 3.9
or newer.
"""

import base64
import http.client
import json
import os
import socket
import subprocess
import threading
import urllib.parse


class PerfsimError(Exception):
    """A request that the server refused: its HTTP status and its text."""

    def __init__(self, status, text):
        super().__init__("%s (status %d)" % (text, status))
        self.status = status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Client:
    """Asks one server. Threads may share a client; they take turns."""

    def __init__(self, url, token=None, timeout=120.0):
        """url is http://HOST:PORT or unix:PATH; token is that of the server,
        else the variable PERFSIM_TOKEN."""
        self._url, self._timeout = url, timeout
        self._token = token or os.environ.get("PERFSIM_TOKEN")
        self._lock = threading.Lock()
        self._http = self._process = None

    @classmethod
    def start(cls, program="perfsim", root=None, options=()):
        """Start a server of one's own, which ends with close()."""
        command = [program, "serve", "--stdio", *options]
        if root is not None:
            command += ["--root", root]
        self = cls("")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def close(self):
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()
            self._process.stdout.close()
            self._process = None
        if self._http is not None:
            self._http.close()
            self._http = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def predict(self, module=None, changes=None, **parameters):
        """The report of run, with module_id and causes.

        The module is bytes or text, or named by path= or module_id=. changes
        are dictionaries: instruction, and opcode, engine, dtype, elements,
        output_elements, partitions, dma_bytes, latency_ns or issue_ns.
        """
        return self._call("predict", module, changes, parameters)

    def explain(self, module=None, changes=None, **parameters):
        return self._call("explain", module, changes, parameters)

    def whatif(self, module=None, changes=None, **parameters):
        """set= is a list of assignments such as "pe.clock=1.2x"."""
        return self._call("whatif", module, changes, parameters)

    def diff(self, module=None, **parameters):
        return self._call("diff", module, None, parameters)

    def batch(self, requests):
        """Answers to many requests: dictionaries with call and the parameters
        of that call (module as body), in order. An entry that was refused is a
        PerfsimError, not raised."""
        lines = b"".join(_line(**r) for r in requests)
        with self._lock:
            if self._process is not None:
                sender = threading.Thread(target=self._send, args=(lines,))
                sender.start()
                answers = [self._process.stdout.readline() for _ in range(len(requests))]
                sender.join()
            else:
                status, body = self._post("/v1/batch", lines, "application/jsonl")
                if status != 200:
                    raise _error(status, body)
                answers = body.splitlines()
        return [_result(a) for a in answers]

    def _send(self, data):
        self._process.stdin.write(data)
        self._process.stdin.flush()

    def _call(self, call, module, changes, parameters):
        if isinstance(module, str):
            module = module.encode()
        if self._process is not None or module is not None and changes:
            r = self.batch([dict(parameters, call=call, body=module, changes=changes)])[0]
            if isinstance(r, PerfsimError):
                raise r
            return r
        query = []
        for name, value in parameters.items():
            for v in value if isinstance(value, (list, tuple)) else [value]:
                query.append((name, {True: "true", False: "false"}.get(v, v) if isinstance(v, bool) else v))
        body, kind = module, "application/octet-stream"
        if body is None:
            body, kind = json.dumps({"changes": changes or []}).encode() if changes else b"", "application/json"
        with self._lock:
            status, answer = self._post("/v1/%s?%s" % (call, urllib.parse.urlencode(query)), body, kind)
        if status != 200:
            raise _error(status, answer)
        return json.loads(answer)

    def _post(self, path, body, kind):
        headers = {"Content-Type": kind}
        if self._token:
            headers["Authorization"] = "Bearer " + self._token
        for last in (False, True):
            fresh = self._http is None
            if fresh:
                self._http = self._connect()
            try:
                self._http.request("POST", path, body, headers)
                answer = self._http.getresponse()
                return answer.status, answer.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # The server closed a connection that was idle: try once more.
                self._http.close()
                self._http = None
                if fresh or last:
                    raise

    def _connect(self):
        if self._url.startswith("unix:"):
            return _UnixConnection(self._url[len("unix:"):], self._timeout)
        u = urllib.parse.urlsplit(self._url)
        kind = http.client.HTTPSConnection if u.scheme == "https" else http.client.HTTPConnection
        return kind(u.hostname, u.port, timeout=self._timeout)


def _line(body=None, changes=None, **request):
    if body is not None:
        request["body_base64"] = base64.b64encode(body.encode() if isinstance(body, str) else body).decode()
    if changes:
        request["changes"] = changes
    return json.dumps(request).encode() + b"\n"


def _result(line):
    if not line:
        raise PerfsimError(500, "the server ended")
    answer = json.loads(line)
    if answer["status"] != 200:
        return PerfsimError(answer["status"], answer.get("error", ""))
    return answer["result"]


def _error(status, body):
    try:
        return PerfsimError(status, json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return PerfsimError(status, body[:200].decode("utf-8", "replace"))


def reward(client, module, baseline_ns, **parameters):
    """How much faster a candidate is than a baseline, for a tuner: 0.25 is a
    quarter less time. A candidate that cannot be predicted gets -1."""
    try:
        return 1 - client.predict(module, causes=0, **parameters)["latency_ns"] / baseline_ns
    except PerfsimError:
        return -1.0


def table(path, columns=None):
    """A table of `perfsim export --to parquet` or csv, or of `perfsim sweep`,
    as a pandas.DataFrame. Needs pandas, and pyarrow for Parquet."""
    try:
        import pandas
    except ImportError as e:
        raise ImportError("perfsim_client.table needs pandas (pip install pandas pyarrow)") from e
    name = os.fspath(path)
    if name.endswith(".parquet"):
        try:
            return pandas.read_parquet(name, columns=columns)
        except ImportError as e:
            raise ImportError("reading Parquet needs pyarrow (pip install pyarrow)") from e
    if name.endswith(".jsonl"):
        frame = pandas.read_json(name, lines=True)
        return frame if columns is None else frame[columns]
    return pandas.read_csv(name, usecols=columns)


def _tune(program, path):
    """An example: find the slowest instructions that may be made cheaper by a
    tuner, here by asking for one variant after another."""
    with Client.start(program, root=os.path.dirname(os.path.abspath(path))) as client:
        held = client.predict(path=os.path.basename(path))
        best, choice = 0.0, None
        for scale in (1, 2, 4):
            change = {"instruction": "#1", "elements": 128 * scale}
            gain = reward(client, None, held["latency_ns"], module_id=held["module_id"], changes=[change])
            if choice is None or gain > best:
                best, choice = gain, change
        print(json.dumps({"baseline_ns": held["latency_ns"], "best": choice, "reward": round(best, 4)}))


if __name__ == "__main__":
    import sys

    if len(sys.argv) != 3:
        sys.exit("usage: perfsim_client.py PERFSIM MODULE")
    _tune(sys.argv[1], sys.argv[2])
