# Python loads this before a script. The httpx of Debian is older than the samples that people write for it: before 0.24
# it left the line ends on its lines. Here it splits as it does today.
import httpx


def iter_lines(response):
    rest = ""
    for text in response.iter_text():
        lines = (rest + text).splitlines(keepends=True)
        rest = lines.pop() if lines and lines[-1].splitlines()[0] == lines[-1] else ""
        yield from (line.splitlines()[0] for line in lines)
    if rest:
        yield rest


if tuple(int(part) for part in httpx.__version__.split(".")[:2]) < (0, 24):
    httpx.Response.iter_lines = iter_lines
