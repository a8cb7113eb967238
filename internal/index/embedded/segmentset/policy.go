package segmentset

import (
	"iter"

	"tutti/internal/index/embedded/segment"
)

// Rules by which adjacent segments are merged. They count a document whose columns have more than countedBytes as several, so that a
// merge, which holds the old and the new columns, is bounded by bytes too. Each merge reads and writes all its documents, so segments wait for others of about
// their size, and a document is merged about three times on its way from a batch of a thousand to a large segment.
const (
	// countedBytes is the size of the columns of a document, in bytes, above which it counts as several.
	countedBytes = 1 << 10
	// memoryFan is the number of segments of about equal size, only in memory, that are merged. The result has at most
	// memoryMaxDocuments: larger segments are soon written to a file anyway.
	memoryFan          = 4
	memoryMaxDocuments = 3_000
	// flushDocuments is the number of documents only in memory from which they are merged into a file: a restart has to rebuild
	// them.
	flushDocuments = 16_000
	// minFileDocuments is the number of documents from which a segment is written to a file.
	minFileDocuments = 8_192
	// fileFan is the number of segments of about equal size, in files, that are merged. From bigTier on two are enough, to keep
	// their number low.
	fileFan = 8
	bigTier = 5
	// maxSegmentDocuments is the maximum size of a merged segment, and maxSegmentShare the fraction of the index (one in
	// maxSegmentShare) where that is more: merging larger ones takes long, and needs memory for both the old and the new.
	maxSegmentDocuments = 160_000
	maxSegmentShare     = 6
	// maxSegments is the number of segments from which maxSegmentsFan adjacent segments of any size are merged, those with the
	// least work.
	maxSegments    = 30
	maxSegmentsFan = 8
	// rewriteDeletedShare is the share of deleted documents, and rewriteDeletedMin their minimum number, from which a segment is
	// rewritten.
	rewriteDeletedShare = 0.3
	rewriteDeletedMin   = 512
)

// segmentStats is the input of the merge rules for one segment.
type segmentStats struct {
	live, deleted   int
	onDisk, merging bool
}

func statsOf(segments []Member) []segmentStats {
	stats := make([]segmentStats, len(segments))
	for i := range segments {
		v := &segments[i]
		deleted := v.deletedCount()
		times := countedTimes(v.segment)
		stats[i] = segmentStats{
			live: times * (v.segment.Documents() - deleted), deleted: times * deleted, onDisk: v.file.number != 0, merging: v.merging,
		}
	}
	return stats
}

// countedTimes returns as how many each document of a segment counts.
func countedTimes(s *segment.Segment) int {
	return max(1, int(s.Bytes()/countedBytes)/max(1, s.Documents()))
}

// counted returns the number of documents that a segment counts as.
func counted(s *segment.Segment) int { return countedTimes(s) * s.Documents() }

// run is a range of adjacent segments, from ≤ i < to, and the number of their documents that are not deleted.
type run struct{ from, to, documents int }

// policy applies the merge rules to the segments of a Set.
type policy struct {
	stats        []segmentStats
	maxDocuments int
}

// chooseMerges returns the runs worth merging, most urgent first. They contain no segment that is being merged; runs of different
// rules may overlap. Unless files is set, the rule flush does not apply, whose only purpose is to write documents to a file.
func chooseMerges(stats []segmentStats, files bool) iter.Seq[run] {
	p := &policy{stats: stats}
	total := 0
	for _, w := range stats {
		total += w.live
	}
	p.maxDocuments = max(maxSegmentDocuments, total/maxSegmentShare)
	rules := []func(yield func(run) bool) bool{p.flush, p.mergeMemory, p.mergeFiles, p.rewriteDeleted, p.reduceCount}
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

// runs returns the longest runs of idle segments accepted by belongs, with at most most documents unless the run is a single
// segment.
func (p *policy) runs(most int, belongs func(w *segmentStats) bool) iter.Seq[run] {
	return func(yield func(run) bool) {
		r := run{}
		for i := range p.stats {
			w := &p.stats[i]
			in := !w.merging && belongs(w)
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

// flush yields the segments that are only in memory, once they have enough documents.
func (p *policy) flush(yield func(run) bool) bool {
	waiting := 0
	for _, w := range p.stats {
		if !w.onDisk && !w.merging {
			waiting += w.live
		}
	}
	if waiting < flushDocuments {
		return true
	}
	for r := range p.runs(p.maxDocuments, func(w *segmentStats) bool { return !w.onDisk }) {
		if r.documents >= minFileDocuments && !yield(r) {
			return false
		}
	}
	return true
}

// mergeMemory yields runs of small segments that are only in memory, up to the same tier, starting with the lowest tier.
func (p *policy) mergeMemory(yield func(run) bool) bool {
	for t := range tier(memoryMaxDocuments, memoryFan) + 1 {
		for r := range p.runs(memoryMaxDocuments, func(w *segmentStats) bool { return !w.onDisk && tier(w.live, memoryFan) <= t }) {
			if r.to-r.from >= memoryFan && p.balanced(r) && !yield(r) {
				return false
			}
		}
	}
	return true
}

// mergeFiles yields runs of segments in files: those up to the same tier, or large ones that together reach half the maximum size.
func (p *policy) mergeFiles(yield func(run) bool) bool {
	for t := range bigTier {
		for r := range p.runs(p.maxDocuments, func(w *segmentStats) bool { return w.onDisk && tier(w.live, fileFan) <= t }) {
			if r.to-r.from >= fileFan && p.balanced(r) && !yield(r) {
				return false
			}
		}
	}
	for r := range p.runs(p.maxDocuments, func(w *segmentStats) bool { return w.onDisk && tier(w.live, fileFan) >= bigTier }) {
		if r.to-r.from > 1 && 2*r.documents >= p.maxDocuments && p.balanced(r) && !yield(r) {
			return false
		}
	}
	return true
}

// balanced reports whether no segment has most of the documents of a run.
func (p *policy) balanced(r run) bool {
	most := 0
	for _, w := range p.stats[r.from:r.to] {
		most = max(most, w.live)
	}
	return 5*most <= 3*r.documents
}

// tier returns how many times documents can be divided by by.
func tier(documents, by int) int {
	t := 0
	for documents >= by {
		documents /= by
		t++
	}
	return t
}

// rewriteDeleted yields the segments with many deleted documents.
func (p *policy) rewriteDeleted(yield func(run) bool) bool {
	for i, w := range p.stats {
		much := w.deleted >= rewriteDeletedMin && float64(w.deleted) > rewriteDeletedShare*float64(w.deleted+w.live)
		if !w.merging && (much || w.live == 0) && !yield(run{i, i + 1, w.live}) {
			return false
		}
	}
	return true
}

// reduceCount yields the adjacent segments that are merged with the least work, when there are too many segments.
func (p *policy) reduceCount(yield func(run) bool) bool {
	if len(p.stats) < maxSegments {
		return true
	}
	var best run
	for from := 0; from+maxSegmentsFan <= len(p.stats); from++ {
		r := run{from: from, to: from + maxSegmentsFan}
		idle := true
		for _, w := range p.stats[r.from:r.to] {
			r.documents += w.live
			idle = idle && !w.merging
		}
		if idle && r.documents <= p.maxDocuments && (best.to == 0 || r.documents < best.documents) {
			best = r
		}
	}
	return best.to == 0 || yield(best)
}
