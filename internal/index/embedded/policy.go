package embedded

import "iter"

// Which neighbouring segments become one. Each merge reads and writes all documents in it, so small ones wait for equals, and a
// document is merged about three times on its way from a batch of a thousand to a big segment.
const (
	// youngFan is how many segments in memory alone, that are about equal, become one. What they make is at most
	// youngMost documents: more soon becomes a file anyway.
	youngFan  = 4
	youngMost = 3_000
	// flushDocuments is how many documents may be in memory alone, before they are merged into a file: a restart makes their
	// segments anew.
	flushDocuments = 16_000
	// fileLeast is from how many documents on a segment is worth a file.
	fileLeast = 8_192
	// oldFan is how many segments in files, that are about equal, become one. From bigTier on two are enough, so that there are
	// few of them.
	oldFan  = 8
	bigTier = 5
	// giantDocuments is how many documents a segment gets by merging, and giantShare the part of the index where that is more:
	// what is bigger takes long to merge, and for as long the memory of both the old and the new.
	giantDocuments = 160_000
	giantShare     = 6
	// mostSegments is from how many segments on crowdFan neighbours are merged, whatever they are, with the least work.
	mostSegments = 30
	crowdFan     = 8
	// deadShare is the share of dead documents from which on a segment is made anew, deadLeast how many at least.
	deadShare = 0.3
	deadLeast = 512
)

// weight is what the rules know of a segment.
type weight struct {
	live, dead  int
	filed, busy bool
}

func weigh(volumes []volume) []weight {
	weights := make([]weight, len(volumes))
	for i := range volumes {
		v := &volumes[i]
		dead := v.gone()
		weights[i] = weight{live: v.segment.Documents() - dead, dead: dead, filed: v.file.number != 0, busy: v.busy}
	}
	return weights
}

// run is some neighbours of a shelf, from ≤ i < to, and their live documents.
type run struct{ from, to, documents int }

// policy applies the rules to the segments of a shelf.
type policy struct {
	weights []weight
	giant   int
}

// choose returns what is worth merging, the most urgent first. Nothing that is busy is in it; the runs of different rules may
// overlap. Without files there is no use in merging for the sake of one.
func choose(weights []weight, files bool) iter.Seq[run] {
	p := &policy{weights: weights}
	total := 0
	for _, w := range weights {
		total += w.live
	}
	p.giant = max(giantDocuments, total/giantShare)
	rules := []func(yield func(run) bool) bool{p.flush, p.young, p.old, p.dead, p.crowd}
	if !files {
		rules = rules[1:]
	}
	return func(yield func(run) bool) {
		for _, rule := range rules {
			if !rule(yield) {
				return
			}
		}
	}
}

// runs returns the longest runs of idle neighbours that belong, with at most so many documents but where there is one alone.
func (p *policy) runs(most int, belongs func(w *weight) bool) iter.Seq[run] {
	return func(yield func(run) bool) {
		r := run{}
		for i := range p.weights {
			w := &p.weights[i]
			in := !w.busy && belongs(w)
			if in && r.to == i && r.to > r.from && r.documents+w.live <= most {
				r.to, r.documents = i+1, r.documents+w.live
				continue
			}
			if r.to > r.from && !yield(r) {
				return
			}
			r = run{}
			if in {
				r = run{from: i, to: i + 1, documents: w.live}
			}
		}
		if r.to > r.from {
			yield(r)
		}
	}
}

// flush is the segments that are in memory alone, once they are many documents.
func (p *policy) flush(yield func(run) bool) bool {
	waiting := 0
	for _, w := range p.weights {
		if !w.filed && !w.busy {
			waiting += w.live
		}
	}
	if waiting < flushDocuments {
		return true
	}
	for r := range p.runs(p.giant, func(w *weight) bool { return !w.filed }) {
		if r.documents >= fileLeast && !yield(r) {
			return false
		}
	}
	return true
}

// young is enough small segments in memory alone, up to the same tier, from the lowest tier on.
func (p *policy) young(yield func(run) bool) bool {
	for t := range tier(youngMost, youngFan) + 1 {
		for r := range p.runs(youngMost, func(w *weight) bool { return !w.filed && tier(w.live, youngFan) <= t }) {
			if r.to-r.from >= youngFan && p.doubles(r) && !yield(r) {
				return false
			}
		}
	}
	return true
}

// old is enough segments in files: those up to the same tier, or big ones that are a giant together.
func (p *policy) old(yield func(run) bool) bool {
	for t := range bigTier {
		for r := range p.runs(p.giant, func(w *weight) bool { return w.filed && tier(w.live, oldFan) <= t }) {
			if r.to-r.from >= oldFan && p.doubles(r) && !yield(r) {
				return false
			}
		}
	}
	for r := range p.runs(p.giant, func(w *weight) bool { return w.filed && tier(w.live, oldFan) >= bigTier }) {
		if r.to-r.from > 1 && 2*r.documents >= p.giant && p.doubles(r) && !yield(r) {
			return false
		}
	}
	return true
}

// doubles reports whether no segment of a run is nearly all of it.
func (p *policy) doubles(r run) bool {
	most := 0
	for _, w := range p.weights[r.from:r.to] {
		most = max(most, w.live)
	}
	return 5*most <= 3*r.documents
}

// tier is how many times a number of documents can be divided.
func tier(documents, by int) int {
	t := 0
	for documents >= by {
		documents /= by
		t++
	}
	return t
}

// dead is the segments of which much is dead.
func (p *policy) dead(yield func(run) bool) bool {
	for i, w := range p.weights {
		much := w.dead >= deadLeast && float64(w.dead) > deadShare*float64(w.dead+w.live)
		if !w.busy && (much || w.live == 0) && !yield(run{i, i + 1, w.live}) {
			return false
		}
	}
	return true
}

// crowd is the neighbours that are merged with the least work, when there are too many segments.
func (p *policy) crowd(yield func(run) bool) bool {
	if len(p.weights) < mostSegments {
		return true
	}
	var best run
	for from := 0; from+crowdFan <= len(p.weights); from++ {
		r := run{from: from, to: from + crowdFan}
		idle := true
		for _, w := range p.weights[r.from:r.to] {
			r.documents += w.live
			idle = idle && !w.busy
		}
		if idle && r.documents <= p.giant && (best.to == 0 || r.documents < best.documents) {
			best = r
		}
	}
	return best.to == 0 || yield(best)
}
