package deadletter

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"tutti/internal/core"
)

// subjectNumber returns the subject of the record with a number, as long as most are.
func subjectNumber(n int) []byte {
	return fmt.Appendf(nil, "tutti.dead-letters.song.STUDY-1.%08d-4f0b-4c57-8f1c-9e4f0b4c5713", n)
}

// version is a result.
type version struct {
	record int
	at     core.Version
}

// TestSettled: each of the last results counts, with the newest version of its record, however often records are looked up in between.
func TestSettled(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, everyLookup := range []int{1, 1000, maxSettled + 1, 10 * maxSettled} {
		s := settled{seed: maphash.MakeSeed()}
		var all []version
		newest := func(record, from int) (newest core.Version) {
			for _, one := range all[max(0, from):] {
				if one.record == record {
					newest = max(newest, one.at)
				}
			}
			return newest
		}
		for i := range 4 * maxSettled {
			all = append(all, version{r.IntN(3 * maxSettled), core.Version(1 + r.IntN(10))})
			s.set(subjectNumber(all[i].record), all[i].at)
			if i%everyLookup == 0 {
				s.after(subjectNumber(r.IntN(3*maxSettled)), 1)
			}
			if i%30_011 != 0 {
				continue
			}
			for range 25 { // of which some were settled before those of the last map
				record := all[max(0, i-r.IntN(2*maxSettled))].record
				certain, possible := newest(record, i+1-maxSettled), newest(record, i+1-2*maxSettled)
				for version := range core.Version(12) {
					if got := s.after(subjectNumber(record), version); certain > version && !got || possible <= version && got {
						t.Fatalf("after %d results: newer than %d: %t, but the versions are %d and %d", i, version, got, certain, possible)
					}
				}
			}
		}
	}
}

// BenchmarkSettled settles records of a run without dead letters.
func BenchmarkSettled(b *testing.B) {
	all := make([][]byte, 4*maxSettled)
	for i := range all {
		all[i] = subjectNumber(i)
	}
	s := settled{seed: maphash.MakeSeed()}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.set(all[i%len(all)], core.Version(i))
	}
}
