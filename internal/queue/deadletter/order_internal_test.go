package deadletter

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"tutti/internal/core"
)

// hashNumber returns the hash of the record with a number.
func hashNumber(n int) (hash subjectHash) {
	binary.BigEndian.PutUint64(hash[:], uint64(n))
	return hash
}

// TestSettled: each of the last results counts, with the newest version of its record, however often records are looked up in between.
func TestSettled(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, everyLookup := range []int{1, 1000, maxSettled + 1, 10 * maxSettled} {
		var s settled
		var all []result
		newest := func(hash subjectHash, from int) (version core.Version) {
			for _, one := range all[max(0, from):] {
				if one.hash == hash {
					version = max(version, one.version)
				}
			}
			return version
		}
		for i := range 4 * maxSettled {
			all = append(all, result{hashNumber(r.IntN(3 * maxSettled)), core.Version(1 + r.IntN(10))})
			s.set(all[i].hash, all[i].version)
			if i%everyLookup == 0 {
				s.after(hashNumber(r.IntN(3*maxSettled)), 1)
			}
			if i%49_999 != 0 {
				continue
			}
			for range 5 {
				hash := hashNumber(r.IntN(3 * maxSettled))
				certain, possible := newest(hash, i+1-maxSettled), newest(hash, i+1-2*maxSettled)
				for version := range core.Version(12) {
					if got := s.after(hash, version); certain > version && !got || possible <= version && got {
						t.Fatalf("after %d results: newer than %d: %t, but the versions are %d and %d", i, version, got, certain, possible)
					}
				}
			}
		}
	}
}

// BenchmarkSettled settles records of a run without dead letters.
func BenchmarkSettled(b *testing.B) {
	hashes := make([]subjectHash, 4*maxSettled)
	for i := range hashes {
		hashes[i] = hashOf(binary.BigEndian.AppendUint64(nil, uint64(i)))
	}
	var s settled
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.set(hashes[i%len(hashes)], core.Version(i))
	}
}
