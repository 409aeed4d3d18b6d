# Sums up the logs of test steps. Prints the skipped tests, the failed ones with the first lines of what each wrote (but
# not its backtraces), then `N passed, N failed, N skipped`, and exits with 1 if a test failed. Failures come last, as the
# end of a long output is what a reader sees. The log of a step ends with `step NAME STATUS`. A step without a test binary
# counts as one test. So does a failure that no test explains (a failed build, or a timeout, status 124). A test that passed
# but printed `skipped: ..` counts as skipped. A test that failed and passed when it was run again, `flaky: NAME: ..`, counts
# as passed; with more than two of them, the run has failed.

BEGIN { shown_lines = 40; flaky_max = 2 }

/^successes:$/ { in_successes = 1; left = 0; next }
/^failures:$/ { in_successes = left = 0; next }
/^---- .* ----$/ { test = $2; counted = 0; left = in_successes ? 0 : shown_lines; if (left) say(test ":"); next }
/^stack backtrace:$/ { in_backtrace = 1; next }
in_backtrace && /^ +([0-9]+:|at) / { next }
{ in_backtrace = 0 }
/^note: (Some details are omitted|run with `RUST_BACKTRACE)/ { next }
/^(FAIL|ERROR): / { left = shown_lines }
/^(Ran [0-9]+ tests? in|test result:|step [^ ]+ [0-9]+$)/ { left = 0 }
left > 0 && /[^ =-]/ { say("    " $0); left-- }
in_successes && /^skipped: / {
    why = "skipped: " test substr($0, 8)
    if (!printed[why]++) print why
    if (!counted) hidden++
    counted = 1
    next
}
/^test .* FAILED$/ { say("failed: " $2) }
/^flaky: / { flaky++; say($0) }
/^left to make test-all: [0-9]+$/ { left_to_all += $NF }

/^test result: / {
    # test result: ok. 3 passed; 0 failed; 1 ignored; ...
    passed += $4 - hidden; failed += $6; skipped += $8 + hidden
    suites++; broken += $6; in_successes = hidden = 0
}

# Python's unittest: `Ran 7 tests in 0.1s`, then `OK (skipped=1)` or `FAILED (failures=1, errors=1)`.
/^Ran [0-9]+ tests? in / { ran = $2; next }
ran != "" && /^(OK|FAILED)( \(.*\))?$/ {
    bad = count("failures") + count("errors"); left_out = count("skipped")
    passed += ran - bad - left_out; failed += bad; skipped += left_out
    suites++; broken += bad; ran = ""
}

/^step [^ ]+ [0-9]+$/ {
    if ($3 == 77) { skipped++; print "skipped: " $2 }
    else if ($3 == 0 && suites == 0) passed++
    else if ($3 != 0 && (broken == 0 || $3 == 124)) { failed++; say("failed: " $2) }
    suites = broken = in_successes = hidden = 0
}

function say(line) {
    failures = failures line "\n"
}

function count(word) {
    return match($0, word "=[0-9]+") ? substr($0, RSTART + length(word) + 1, RLENGTH - length(word) - 1) : 0
}

END {
    printf "%s", failures
    if (left_to_all) printf "%d tests run in make test-all only\n", left_to_all
    printf "%d passed, %d failed, %d skipped%s\n", passed, failed, skipped, flaky ? ", " flaky " flaky" : ""
    exit (failed > 0 || passed == 0 || flaky > flaky_max)
}
