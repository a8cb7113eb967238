#!/usr/bin/env bash
# The package testing of Go 1.26.8. Needs Go.
#
# What happens: the functions that a parallel test gave to Cleanup have run when it ends, and yet stay referenced until the last parallel test of
# the same level has ended: the slice of them is shortened after each call, its array is not cleared, and the parent keeps every parallel test. So
# what a cleanup closes (a server, a buffer, a store) is not freed, and the memory of a process with many parallel tests grows with each of them. A
# test that does not call Parallel is freed. Registering as many empty functions from the first cleanup, which runs last, takes their places.
#
# Output seen (EXPECTED), live heap after 20 tests that each closed 8 MB:
#   not parallel: 0 of 20 kept
#   parallel: 20 of 20 kept
#   parallel, the places taken by empty functions: 0 of 20 kept
#
# Ends with an error if the numbers are others.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
export GOTOOLCHAIN=go1.26.8 CGO_ENABLED=0
cd "$dir"
go mod init kept 2>/dev/null
cat >kept_test.go <<'GO'
package kept

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

type server struct{ buffer [8 << 20]byte }

func (s *server) close() { s.buffer[0]++ }

func TestMain(m *testing.M) { m.Run() }

func TestKept(t *testing.T) {
	for _, c := range []struct {
		name            string
		parallel, taken bool
		want            uint64
	}{
		{"not parallel", false, false, 0},
		{"parallel", true, false, 20},
		{"parallel, the places taken by empty functions", true, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var closed sync.WaitGroup
			closed.Add(20)
			measure := func(t *testing.T) {
				closed.Wait()
				runtime.GC()
				runtime.GC()
				var stats runtime.MemStats
				runtime.ReadMemStats(&stats)
				kept := (stats.HeapAlloc + 4<<20) / (8 << 20)
				fmt.Printf("%s: %d of 20 kept\n", c.name, kept)
				if kept != c.want {
					t.Errorf("%s: %d kept, %d seen before", c.name, kept, c.want)
				}
			}
			for i := range 20 {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					if c.parallel {
						t.Parallel()
					}
					t.Cleanup(closed.Done)
					if c.taken {
						t.Cleanup(func() {
							for range 8 {
								t.Cleanup(func() {})
							}
						})
					}
					s := new(server)
					t.Cleanup(s.close)
				})
			}
			t.Run("measure", func(t *testing.T) {
				if c.parallel {
					t.Parallel()
				}
				measure(t)
			})
		})
	}
}
GO
go test -count=1 -parallel 32 .  -v | grep ' kept'
