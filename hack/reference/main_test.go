package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDocs_GeneratedPartsAreFresh(t *testing.T) {
	files, err := generate("../../docs")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(have)); diff != "" {
			t.Errorf("%s is stale: run `make generate`\n%s", path, diff)
		}
	}
}
