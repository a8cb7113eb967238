package segmentset

import (
	"cmp"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/index/embedded/segment"
	"tutti/internal/index/mapping"
)

// Load returns the Members of the files in the manifest of an index, without the documents whose rows are deletes, which are sorted, and
// the numbers of the files that cannot be used: one that is missing, or changed, or lacks values of the types in the mapping tree.
func (f *Folder) Load(name string, tree func() *mapping.Field, manifest []*Entry, deletes []uint64) (members []Member, spoilt []uint64) {
	slices.SortFunc(manifest, func(a, b *Entry) int { return cmp.Compare(a.first, b.first) })
	read := make([]Member, len(manifest))
	group := errgroup.Group{}
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, entry := range manifest {
		group.Go(func() error {
			s, err := f.readEntry(entry)
			if err != nil {
				f.logger.Warn("embedded index rebuilds a segment whose file cannot be read", "index", name, "file", f.Path(entry.file.number), "err", err)
				return nil
			}
			if !s.Covers(tree()) {
				f.logger.Info("embedded index rebuilds a segment of an earlier release, which lacks values of its types", "index", name,
					"file", f.Path(entry.file.number))
				return nil
			}
			read[i] = Member{segment: s, deleted: entry.deleted, file: entry.file, savedDeleted: entry.deleted}
			return nil
		})
	}
	// The functions return no error: what cannot be read is rebuilt.
	_ = group.Wait()
	for i, entry := range manifest {
		overlaps := len(members) > 0 && entry.first <= members[len(members)-1].last()
		if read[i].segment == nil || overlaps {
			spoilt = append(spoilt, entry.file.number)
			continue
		}
		members = append(members, read[i])
	}
	markDeleted(members, deletes)
	return members, spoilt
}

// readEntry returns the segment of an entry's file.
func (f *Folder) readEntry(entry *Entry) (*segment.Segment, error) {
	s, err := f.read(entry.file)
	if err != nil {
		return nil, err
	}
	numbers := s.Numbers()
	if len(numbers) == 0 || uint32(len(numbers)) != entry.documents || numbers[0] != entry.first || numbers[len(numbers)-1] != entry.last {
		return nil, core.NewError(core.CodeInternal, "the index contains a corrupt segment")
	}
	return s, nil
}
