package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
)

const goodRun = `{"Action":"start","Package":"p"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:3: no such kernel\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"pass","Package":"p","Elapsed":1.25}
`

const badRun = `go: downloading something
{"ImportPath":"q","Action":"build-output","Output":"q.go:1: syntax error\n"}
{"ImportPath":"q","Action":"build-fail"}
{"Action":"fail","Package":"q","FailedBuild":"q"}
{"Action":"output","Package":"r","Test":"TestC","Output":"want 1, got 2\n"}
{"Action":"fail","Package":"r","Test":"TestC"}
{"Action":"fail","Package":"r"}
{"Action":"output","Package":"s","Output":"panic: too long\n"}
{"Action":"fail","Package":"s"}
`

func TestCounts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts")
	var out bytes.Buffer
	if err := run([]string{"record", file}, strings.NewReader(goodRun), &out); err != nil {
		t.Error(err)
	}
	if got := out.String(); got != "skip p TestB: b_test.go:3: no such kernel\nok   p: 1 passed, 1.2 s\n" {
		t.Errorf("got %q", got)
	}
	if err := run([]string{"add", file, "lint", "0"}, nil, &out); err != nil {
		t.Error(err)
	}
	if err := run([]string{"lines", file, "clients"}, strings.NewReader("1 passed, 9 failed\nmore\n7 passed, 0 failed\n"), &out); err != nil {
		t.Error(err)
	}
	out.Reset()
	if err := run([]string{"total", file}, nil, &out); err != nil || out.String() != "9 passed, 0 failed, 1 skipped\n" {
		t.Errorf("total is %q, %v", out.String(), err)
	}
	out.Reset()
	if err := run([]string{"record", file}, strings.NewReader(badRun), &out); err == nil {
		t.Error("a failed run is an error")
	}
	for _, words := range []string{"downloading", "syntax error", "want 1, got 2", "panic: too long", "FAIL q: 1 failed"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("%q is not shown in %q", words, out.String())
		}
	}
	if err := run([]string{"add", file, "lint", "2"}, nil, &out); err == nil {
		t.Error("a failed check is an error")
	}
	if err := run([]string{"lines", file, "clients"}, strings.NewReader("killed\n"), &out); err == nil {
		t.Error("a run without a closing line is an error")
	}
	out.Reset()
	if err := run([]string{"total", file}, nil, &out); err == nil || out.String() != "9 passed, 5 failed, 1 skipped\n" {
		t.Errorf("total is %q, %v", out.String(), err)
	}
}

func TestNothingRan(t *testing.T) {
	file := filepath.Join(t.TempDir(), "counts")
	var out bytes.Buffer
	if err := run([]string{"record", file}, strings.NewReader(""), &out); err != nil {
		t.Error(err)
	}
	if run([]string{"total", file}, nil, &out) == nil || run([]string{"nonsense"}, nil, &out) == nil {
		t.Error("want errors")
	}
}
