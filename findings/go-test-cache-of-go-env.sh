#!/usr/bin/env bash
# The go command and the package testing of Go 1.26.8. Needs Go.
#
# What happens: a variable that `go env -w` has set is one of the go command's, and not of the tests', which get the environment as it was. The key
# of a cached result, however, has the go command's value of each variable that the test has read. So a result from which the test knows that the
# variable was absent is reused for a run in which the test would find it, and one that is still right is not reused after `go env -u`. With
# GOTMPDIR, which T.TempDir reads since Go 1.26, a suite writes its folders to another disk in one of two runs that the cache takes for the same.
#
# Output seen (EXPECTED):
#   set by go env -w: the test reads "", its folder is in the usual place
#   the same, exported, result from the cache: the test reads "", its folder is in the usual place
#   the same, exported, run again: the test reads "elsewhere", its folder is elsewhere
#   in neither, run again: the test reads "", its folder is in the usual place
#
# Ends with an error if a line is another one.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
expected=$(sed -n '/^# Output seen/,/^#$/s/^#   //p' "$0")
unset GOTMPDIR
export GOTOOLCHAIN=go1.26.8 CGO_ENABLED=0 GOFLAGS= GOCACHE=$dir/cache TMPDIR=$dir/usual
mkdir "$dir/usual" "$dir/elsewhere" "$dir/module"
cd "$dir/module"
go mod init cached 2>/dev/null
cat >cached_test.go <<'GO'
package cached

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFolder(t *testing.T) {
	where := "in the usual place"
	if filepath.Dir(filepath.Dir(t.TempDir())) != os.TempDir() {
		where = "elsewhere"
	}
	read := os.Getenv("GOTMPDIR")
	if read != "" {
		read = filepath.Base(read)
	}
	t.Logf("the test reads %q, its folder is %s", read, where)
}
GO
# try WORDS [OPTION]: runs the test.
try() {
  local out cached=
  out=$(go test -v ${2:-} .)
  if grep -q '^ok.*(cached)$' <<<"$out"; then cached=', result from the cache'; elif [ "$1" != 'set by go env -w' ]; then cached=', run again'; fi
  echo "$1$cached: $(sed -n 's/.*cached_test.go:[0-9]*: //p' <<<"$out")"
}
echo "GOTMPDIR=$dir/elsewhere" >"$dir/go.env"
{
  GOENV=$dir/go.env try 'set by go env -w'
  GOENV=off GOTMPDIR=$dir/elsewhere try 'the same, exported'
  GOENV=off GOTMPDIR=$dir/elsewhere try 'the same, exported' -count=1
  GOENV=off try 'in neither'
} | tee "$dir/output"
diff <(echo "$expected") "$dir/output" || {
  echo "the behaviour has changed" >&2
  exit 1
}
