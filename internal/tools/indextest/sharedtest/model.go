package sharedtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"tutti/internal/core"
	"tutti/internal/index/merged"
)

// lastWrite is the newest write of a repository's record.
type lastWrite struct {
	version core.Version
	removed bool
	updated int
	name    string
}

// lastWrites are those of one document, by repository.
type lastWrites map[int]lastWrite

// newest returns the repository whose record a document is made of, and those that have a block in it.
func (l lastWrites) newest() (best int, repos []int) {
	best = -1
	for repo, w := range l {
		if w.removed {
			continue
		}
		repos = append(repos, repo)
		if best < 0 || w.updated > l[best].updated || w.updated == l[best].updated && w.version > l[best].version {
			best = repo
		}
	}
	return best, repos
}

// randomWrites returns writes and removals of all repositories in random order, with repetitions, and their model by document.
func (s *sharing) randomWrites(random *rand.Rand) (all [][]core.Write, model map[string]lastWrites) {
	const documents, versions = 4, 25
	all, model = make([][]core.Write, len(s.repositories)), map[string]lastWrites{}
	for repo := range s.repositories {
		for v := range versions {
			id := fmt.Sprint("doc ", random.IntN(documents))
			last := lastWrite{core.Version(10*(v+1) + repo), random.IntN(3) == 0, random.IntN(1000), fmt.Sprint(repo, " ", v)}
			w := s.put(repo, id, last.version, s.record(repo, "S", fmt.Sprintf("2024-01-01T00:00:00.%03dZ", last.updated), last.name))
			if last.removed {
				w = s.remove(repo, id, last.version)
			}
			if model[id] == nil {
				model[id] = lastWrites{}
			}
			model[id][repo] = last
			all[repo] = append(all[repo], w)
			if random.IntN(4) == 0 {
				all[repo] = append(all[repo], w)
			}
		}
		random.Shuffle(len(all[repo]), func(i, j int) { all[repo][i], all[repo][j] = all[repo][j], all[repo][i] })
	}
	return all, model
}

// testSharedModel: after random writes and removals of three repositories in random order, with repetitions, each has the blocks of its
// newest writes, and a document is made of the newest record.
func testSharedModel(s *sharing) {
	seed := rand.Uint64()
	s.Logf("seed %d", seed)
	all, model := s.randomWrites(rand.New(rand.NewPCG(seed, 1)))
	var writers sync.WaitGroup
	for repo := range s.repositories {
		writers.Go(func() {
			x := merged.New(s.x, s.repositories)
			for chunk := range slices.Chunk(all[repo], 5) {
				for i, r := range s.writeTo(s.Context(), x, chunk...) {
					if r.Outcome == core.OutcomeRetry || r.Outcome == core.OutcomeRejected {
						s.Errorf("write of %q: %v %s", chunk[i].ID, r.Outcome, r.Code)
					}
				}
			}
		})
	}
	writers.Wait()
	// A record that a document should be made of is fetched, and so written once more.
	for repo, writes := range slices.Concat(all, all) {
		repo %= len(all)
		for _, w := range writes {
			if l := model[w.ID][repo]; !l.removed && l.version == w.Version {
				s.outcomes(core.OutcomeIndexed, w)
			}
		}
	}
	for id, docs := range model {
		best, repos := docs.newest()
		want := sharedDocument{}
		if best >= 0 {
			want = sharedDocument{"S", docs[best].name, s.codes(repos...)}
		}
		s.is(id, want)
	}
}
