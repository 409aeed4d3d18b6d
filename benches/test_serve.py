"""Tests of `serve.py`: its requirements and report, its parsers of other programs' output, and
load.c.
"""

import http.server
import os
import random
import socketserver
import tempfile
import threading
import unittest
from pathlib import Path

import serve
import serve_arms
import serve_files
from runner import build
from runner.run import Failure
from serving import clients, process, report
from serving.cases import COLUMNS, FIGURES, Case, at_most, better, near, not_worse
from serving.measure import MEASURES, Result

FOUND = {name: {"path": f"/bin/{name}"} for name in ("nginx", "static-web-server", "miniserve")}
ARMS = serve_arms.all_arms("/bin/fathom", FOUND)
GROUPS = {"fathom": "fathom", "fathom --io sync": "fixed", "fathom --io pool": "fixed", "nginx": "nginx"}


def result_of(requirements=(), kind="hot", figure="requests_s", **servers):
    """Returns a result whose servers have these values of one figure, by block; `_` in a name is a
    space.
    """
    case = Case("case", "a case", kind, figure, 716, tuple(requirements))
    names = {name.replace("_io_", " --io "): values for name, values in servers.items()}
    result = Result(case, [serve_arms.Arm(name, GROUPS[name], ()) for name in names], blocks=3)
    others = {name: 1.0 for name in COLUMNS[kind]}
    for name, values in names.items():
        result.figures[name] = {block: {**others, figure: value} for block, value in enumerate(values)}
    return result


def report_of(result, skipped=None):
    return report.Report([result.case], [result], skipped or {}, random.Random(1))


class Cases(unittest.TestCase):
    def test_every_need_is_of_a_server_and_a_figure_that_are_measured(self):
        for case in serve.CASES:
            words = {word for arm in ARMS if arm.group not in case.without for word in (arm.name, arm.group)}
            self.assertIn(case.kind, MEASURES)
            self.assertIn(case.figure, COLUMNS[case.kind])
            for requirement in case.requirements:
                with self.subTest(case=case.name, requirement=requirement.text):
                    if requirement.figure:
                        self.assertIn(requirement.figure, COLUMNS[case.kind])
                    else:
                        self.assertIn(requirement.reference, words)

    def test_every_figure_of_a_table_is_known(self):
        self.assertEqual({name for names in COLUMNS.values() for name in names} - FIGURES.keys(), set())

    def test_the_hot_files_are_there(self):
        self.assertLessEqual({case.size for case in serve.CASES}, set(serve_files.HOT_BYTES))

    def test_names_are_unique(self):
        for names in (serve.NAMES, [arm.name for arm in ARMS]):
            self.assertEqual(len(names), len(set(names)))


class Servers(unittest.TestCase):
    def test_no_placeholder_is_left_in_a_command_or_a_configuration(self):
        names = process.names_for(8080, "/files", Path("/scratch"))
        for arm in ARMS:
            text = "\n".join([*arm.argv(names), serve_arms.replaced(arm.configuration, names)])
            self.assertIn("8080", text)
            self.assertIn("/files", text)
            self.assertFalse([name for name in (*names, "MORE") if name in text.split("/scratch/conf")], arm.name)

    def test_only_what_was_found_is_measured(self):
        groups = {arm.group for arm in serve_arms.all_arms(None, {"nginx": FOUND["nginx"]})}
        self.assertEqual(groups, {"nginx", "threads"})

    def test_an_earlier_fathom_is_measured_and_must_not_be_better(self):
        arms = serve_arms.all_arms("/bin/fathom", FOUND, "/old/fathom")
        earlier = [arm for arm in arms if arm.group == "earlier"]
        self.assertEqual([arm.command[0] for arm in earlier], ["/old/fathom"])
        case = serve.with_earlier(serve.CASES[0], "/old/fathom")
        added = [one.reference for one in case.requirements if one not in serve.CASES[0].requirements]
        self.assertEqual(added, ["earlier"])
        self.assertIs(serve.with_earlier(serve.CASES[0], None), serve.CASES[0])

    def test_fathom_stays_whatever_is_asked_for(self):
        kept = [arm.name for arm in serve.only(ARMS, "nginx", "aio")]
        self.assertEqual(kept, ["fathom", "nginx", "nginx, no open_file_cache"])

    def test_time_is_found_behind_any_name(self):
        self.assertEqual(process.ticks("7 (a ) b (c) S " + "0 " * 10 + "31 11 0 0"), 42)

    def test_a_server_that_ends_says_why(self):
        arm = serve_arms.Arm("it", "rival", ("sh", "-c", "echo PORT is taken >&2; exit 1"))
        with self.assertRaisesRegex(Failure, r"\d+ is taken"), process.serving(arm, "/", first_cpu()):
            self.fail("it did not start")


class Printed(unittest.TestCase):
    WRK = "Running 1s test\n  13 requests in 1.50s, 2.00MB read\nRequests/sec: 8.67\n"

    def test_wrk(self):
        self.assertEqual(clients.parse_wrk(self.WRK), (13, 1.5))
        for wrong in ("  Socket errors: connect 0, read 3, write 0, timeout 0", "  Non-2xx or 3xx responses: 13"):
            with self.assertRaisesRegex(Failure, wrong.strip()):
                clients.parse_wrk(self.WRK.replace("Requests/sec", f"{wrong}\nRequests/sec"))
        for nothing in ("", "0 requests in 1.00s, 0B read"):
            with self.assertRaises(Failure):
                clients.parse_wrk(nothing)

    def test_strace(self):
        table = """\
strace: Process 8 attached
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000600           6       100           sendmsg
 40.00    0.000400           3       120        20 recvfrom
------ ----------- ----------- --------- --------- ----------------
100.00    0.001000           4       220        20 total
"""
        self.assertEqual(clients.parse_strace(table), {"sendmsg": 100, "recvfrom": 120})

    def test_wrong_answers_are_a_failure(self):
        with self.assertRaisesRegex(Failure, "2 of 9"):
            clients.Load.said('{"errors": 2, "requests": 9}')


class Verdicts(unittest.TestCase):
    def verdict(self, requirement, **servers):
        return report_of(result_of((requirement,), **servers)).verdicts[0]

    def test_more_requests_are_better(self):
        requirement = better(1.5, "nginx", "it")
        self.assertEqual(self.verdict(requirement, fathom=[3, 3, 3], nginx=[2, 2, 2]).outcome, "PASS")
        self.assertEqual(self.verdict(requirement, fathom=[2.8, 2.8, 2.8], nginx=[2, 2, 2]).outcome, "FAIL")

    def test_less_time_is_better(self):
        mixed = {"kind": "mixed", "figure": "p99_ms"}
        requirement = better(5, "fathom --io sync", "it")
        self.assertEqual(self.verdict(requirement, fathom=[1, 1, 1], fathom_io_sync=[6, 6, 6], **mixed).outcome, "PASS")
        self.assertEqual(self.verdict(requirement, fathom=[1, 1, 1], fathom_io_sync=[4, 4, 4], **mixed).outcome, "FAIL")

    def test_within_5_percent_of_the_best_model(self):
        requirement = near(1.05, "fixed", "the best model")
        models = {"fathom_io_sync": [1, 1, 1], "fathom_io_pool": [10, 10, 10]}
        self.assertEqual(self.verdict(requirement, fathom=[9.6, 9.6, 9.6], **models).outcome, "PASS")
        self.assertEqual(self.verdict(requirement, fathom=[9.4, 9.4, 9.4], **models).outcome, "FAIL")

    def test_an_interval_across_the_limit_is_said_with_both_medians(self):
        verdict = self.verdict(not_worse("nginx", "it"), fathom=[900, 1100, 1300], nginx=[1000, 1000, 1000])
        self.assertEqual(verdict.outcome, "PASS (interval crosses)")
        self.assertIn("(1,100 against 1,000 requests/s of nginx)", verdict.measured)

    def test_who_cannot_be_told_from_another_is_not_worse(self):
        requirement = not_worse("nginx", "it")
        near = self.verdict(requirement, fathom=[990, 997, 1010], nginx=[1000, 1000, 1000])
        self.assertEqual(near.outcome, "no difference")
        self.assertEqual(self.verdict(requirement, fathom=[990, 990, 990], nginx=[1000, 1000, 1000]).outcome, "FAIL")

    def test_a_figure_of_its_own_has_a_limit(self):
        result = {"kind": "memory", "figure": "connection_kib"}
        self.assertEqual(self.verdict(at_most(12, "connection_kib"), fathom=[11, 11, 12], **result).outcome, "PASS")
        self.assertEqual(self.verdict(at_most(12, "connection_kib"), fathom=[13, 13, 13], **result).outcome, "FAIL")

    def test_what_is_not_there_passes_nothing(self):
        self.assertEqual(self.verdict(better(1, "nginx", "it"), fathom=[1, 1, 1]).outcome, "not run")
        self.assertEqual(self.verdict(at_most(1, "calls"), nginx=[1, 1, 1]).outcome, "not run")

    def test_a_server_that_is_out_is_nobody_s_best(self):
        result = result_of((better(1, "nginx", "it"),), fathom=[1, 1, 1], nginx=[9, 9, 9])
        result.excluded["nginx"] = "wrong bytes"
        verdict = report_of(result).verdicts[0]
        self.assertEqual((verdict.measured, verdict.outcome), ("wrong bytes", "not run"))

    def test_a_case_that_was_skipped_says_why(self):
        case = result_of((at_most(3, "calls"),), fathom=[1]).case
        skipped = report.Report([case], [], {"case": "needs root"}, random.Random(1))
        self.assertEqual((skipped.verdicts[0].measured, skipped.verdicts[0].outcome), ("needs root", "not run"))


class Tables(unittest.TestCase):
    def test_the_best_server_is_first_and_compared(self):
        table = report_of(result_of(fathom=[2, 2, 2], nginx=[4, 4, 4])).tables["case"].splitlines()
        self.assertTrue(table[2].startswith("| nginx | 3 | 4 |"), table)
        self.assertIn("2.00 [2.00, 2.00]", table[2])

    def test_the_best_model_is_named(self):
        models = report_of(result_of(fathom=[9, 9, 9], fathom_io_sync=[5, 5, 5], fathom_io_pool=[10, 10, 10])).models()
        self.assertIn("| a case | requests/s | 9 | 5 | - | 10 | - | - | - | pool | 0.90 [0.90, 0.90] |", models)

    def test_losses_to_models_count_where_speed_is_measured(self):
        servers = {"fathom": [9, 9, 9], "fathom_io_pool": [10, 10, 10]}
        self.assertEqual(len(list(report_of(result_of(**servers)).losses())), 1)
        servers = {"fathom": [2, 2, 2], "fathom_io_pool": [1, 1, 1], "nginx": [1, 1, 1]}
        memory = report_of(result_of(kind="memory", figure="connection_kib", **servers))
        self.assertEqual(len(list(memory.losses())), 1)

    def test_a_run_directory_holds_every_figure(self):
        wait_output = report_of(result_of((at_most(3, "busy_percent"),), fathom=[2, 2, 2]))
        with tempfile.TemporaryDirectory() as scratch:
            report.write(Path(scratch) / "run", wait_output, {"command": "it", "CPU": "one"}, "How.")
            raw = (Path(scratch) / "run/raw.csv").read_text().splitlines()
            text = (Path(scratch) / "run/README.md").read_text()
        self.assertEqual(len(raw), 1 + 3 * len(COLUMNS["hot"]))
        self.assertEqual(raw[1], "case,fathom,0,requests_s,2")
        for part in ("    it\n", "| CPU | one |", "How.", "| PASS |", "Nowhere in this run."):
            self.assertIn(part, text)


class Files(unittest.TestCase):
    def test_files_differ_and_are_whole(self):
        with tempfile.TemporaryDirectory() as scratch:
            serve_files.fill(Path(scratch), 2, 3, 100)
            files = {path.read_bytes() for path in Path(scratch).rglob("*.html")}
        self.assertEqual((len(files), {len(file) for file in files}), (6, {100}))


class Client(unittest.TestCase):
    """Tests floor/load.c against a Python server."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.load = clients.Load(build.compile_c("load", Path(cls.scratch)))
        cls.server = cls.enterClassContext(Threads(("127.0.0.1", 0), Handler))
        thread = threading.Thread(target=cls.server.serve_forever)
        thread.start()
        cls.addClassCleanup(thread.join)
        cls.addClassCleanup(cls.server.shutdown)

    def paths(self, *paths):
        listed = Path(self.scratch) / "paths"
        listed.write_text("".join(f"{path}\n" for path in paths))
        return listed

    def run_load(self, paths, *words, connections=2):
        return self.load.run(self.server.server_address[1], connections, self.paths(*paths), *words)

    def test_every_path_is_asked_for_in_turn(self):
        Handler.asked.clear()
        said = self.run_load(["/5", "/70000", "/0"], "--count", 6, connections=1)
        self.assertEqual(Handler.asked, ["/5", "/70000", "/0"] * 2)
        self.assertEqual((said["requests"], said["bytes"], said["rounds"]), (6, 140_010, 2))

    def test_wrong_answers_are_seen(self):
        for path in ("/missing", "/short"):
            with self.subTest(path), self.assertRaisesRegex(Failure, "1 of 1 answers were wrong"):
                self.run_load([path], "--count", 1)

    def test_a_stall_counts_for_every_request_that_was_due(self):
        # One connection, ten requests due 10 ms apart, the first of which takes 300 ms: the last
        # one waits for 200 ms of that.
        said = self.run_load(["/stall", *["/5"] * 9], "--seconds", 0.1, "--rate", 100, connections=1)
        self.assertEqual((said["requests"], said["unanswered"]), (10, 0))
        self.assertGreater(said["max_ms"], 299)
        self.assertGreater(said["p50_ms"], 200)

    def test_connections_are_held(self):
        port, paths = self.server.server_address[1], self.paths("/5")
        with self.load.hold_connections(port, 5, paths):
            # Connections of other tests may still be open.
            self.assertGreaterEqual(self.server.open, 5)

    def test_it_works_beside(self):
        with self.load.run_in_background(self.server.server_address[1], 2, self.paths("/5"), "--count", 9) as end:
            self.assertEqual(end()["requests"], 9)

    def test_an_answer_and_its_head(self):
        answer = clients.fetch(self.server.server_address[1], "/5")
        self.assertEqual((answer.status, answer.body), (200, b"x" * 5))
        self.assertEqual(answer.head_bytes, len("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"))


class Threads(socketserver.ThreadingTCPServer):
    daemon_threads = True
    open = 0

    def process_request(self, request, address):
        self.open += 1
        super().process_request(request, address)

    def shutdown_request(self, request):
        self.open -= 1
        super().shutdown_request(request)


class Handler(http.server.BaseHTTPRequestHandler):
    """Responds with as many bytes as the path says."""

    protocol_version = "HTTP/1.1"
    asked = []
    stall = threading.Event()

    def do_GET(self):
        self.asked.append(self.path)
        if self.path == "/stall":
            self.stall.wait(0.3)
        number = self.path[1:]
        size = int(number) if number.isdigit() else 5
        self.send_response_only(404 if number == "missing" else 200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(b"x" * (size - (number == "short")))
        self.close_connection = number == "short"

    def log_message(self, *words):
        pass


def first_cpu():
    return min(os.sched_getaffinity(0))


if __name__ == "__main__":
    unittest.main()
