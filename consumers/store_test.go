package consumers_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tutti/internal/core"
	"tutti/internal/core/jobsum"
)

// errLost is the error of a compare-and-set with an old revision.
var errLost = core.NewError(core.CodeConflict, "the revision has changed")

// store is a key-value bucket with revisions, and the dead letters.
type store struct {
	mu       sync.Mutex
	revision uint64
	sumsRead int // sums of groups and organizations
	cells    map[string]cell
	letters  map[string]core.DeadLetter
	notes    map[string]map[[2]int][]uint64 // by list, then by reading and page
	late     map[string]map[[2]int][]string // by list, then by page and epoch
	// put, when set, may refuse a dead letter.
	put func(core.DeadLetter) error
}

type cell struct {
	revision uint64
	value    []byte
}

func newStore() *store {
	return &store{
		cells: map[string]cell{}, letters: map[string]core.DeadLetter{}, notes: map[string]map[[2]int][]uint64{},
		late: map[string]map[[2]int][]string{},
	}
}

func (s *store) get(key string) (cell, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok := s.cells[key]
	return c, ok
}

// set stores value if key has the given revision, 0 for none.
func (s *store) set(key string, revision uint64, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cells[key].revision != revision {
		return errLost
	}
	s.revision++
	s.cells[key] = cell{revision: s.revision, value: value}
	return nil
}

func read[T any](s *store, key string) (v T, revision uint64, err error) {
	c, ok := s.get(key)
	if !ok {
		return v, 0, core.NewError(core.CodeNotFound, key+" does not exist")
	}
	return v, c.revision, json.Unmarshal(c.value, &v)
}

func write[T any](s *store, key string, revision uint64, v T) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.set(key, revision, data)
}

func update[T any](s *store, key string, change func(*T) error) (T, error) {
	for {
		v, revision, err := read[T](s, key)
		if err != nil {
			return v, err
		}
		if err := change(&v); err != nil {
			return v, err
		}
		if err := write(s, key, revision, v); !errors.Is(err, errLost) {
			return v, err
		}
	}
}

func jobKey(id string) string               { return "job " + id }
func groupKey(id string, number int) string { return fmt.Sprintf("group %s %d", id, number) }
func runKey(id, organization string) string { return "run " + id + " " + organization }
func cellKey(name string) string            { return "slot " + name }
func idsKey(id, organization string, page int) string {
	return fmt.Sprintf("ids %s %s %d", id, organization, page)
}

func (s *store) job(id string) (core.Job, error) {
	j, _, err := read[core.Job](s, jobKey(id))
	return j, err
}

// watch returns a function that returns a job as store.job does, and reads it again only when it has changed: for those who wait for it.
func (s *store) watch(id string) func() (core.Job, error) {
	var job core.Job
	var seen uint64
	return func() (core.Job, error) {
		var err error
		if c, _ := s.get(jobKey(id)); c.revision != seen || seen == 0 {
			job, seen, err = read[core.Job](s, jobKey(id))
		}
		return job, err
	}
}

func (s *store) runs(id string) ([]core.OrganizationRun, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var keys []string
	for key := range s.cells {
		if strings.HasPrefix(key, runKey(id, "")) {
			keys = append(keys, key)
		}
	}
	runs := make([]core.OrganizationRun, len(keys))
	alone := map[string]bool{}
	for i, key := range keys {
		if err := json.Unmarshal(s.cells[key].value, &runs[i]); err != nil {
			return nil, err
		}
		alone[runs[i].Organization] = true
	}
	for key, c := range s.cells {
		if !strings.HasPrefix(key, "group "+id+" ") {
			continue
		}
		var members []core.OrganizationRun
		if err := json.Unmarshal(c.value, &members); err != nil {
			return nil, err
		}
		for _, run := range members {
			if !run.Moved && !alone[run.Organization] {
				runs = append(runs, run)
			}
		}
	}
	slices.SortFunc(runs, func(a, b core.OrganizationRun) int { return strings.Compare(a.Organization, b.Organization) })
	return runs, nil
}

// inGroup returns the number of the group of an organization that is not stored by itself.
func (s *store) inGroup(id, organization string) (int, error) {
	for number := range 1000 {
		members, _, err := read[[]core.OrganizationRun](s, groupKey(id, number))
		if err != nil {
			return 0, err
		}
		for _, run := range members {
			if run.Organization == organization && !run.Moved {
				return number, nil
			}
		}
	}
	return 0, core.NewError(core.CodeNotFound, "too many groups")
}

// run returns an organization, by itself or in its group.
func (s *store) run(id, organization string) (core.OrganizationRun, error) {
	run, _, err := read[core.OrganizationRun](s, runKey(id, organization))
	if core.CodeOf(err) != core.CodeNotFound {
		return run, err
	}
	number, err := s.inGroup(id, organization)
	if err != nil {
		return run, err
	}
	members, _, err := read[[]core.OrganizationRun](s, groupKey(id, number))
	return members[slices.IndexFunc(members, func(run core.OrganizationRun) bool { return run.Organization == organization })], err
}

// updateRun changes an organization, by itself or in its group.
func (s *store) updateRun(id, organization string, change func(*core.OrganizationRun) error) (core.OrganizationRun, error) {
	if _, alone := s.get(runKey(id, organization)); alone {
		return update(s, runKey(id, organization), change)
	}
	number, err := s.inGroup(id, organization)
	if err != nil {
		return core.OrganizationRun{}, err
	}
	var changed core.OrganizationRun
	_, err = update(s, groupKey(id, number), func(runs *[]core.OrganizationRun) error {
		at := slices.IndexFunc(*runs, func(run core.OrganizationRun) bool { return run.Organization == organization })
		err := change(&(*runs)[at])
		changed = (*runs)[at]
		return err
	})
	return changed, err
}

// sums returns the sums of the groups and organizations of a job that changed after a revision, the first changes first.
func (s *store) sums(id string, after uint64) ([]jobsum.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes []jobsum.Change
	for key, c := range s.cells {
		organization, alone := strings.CutPrefix(key, runKey(id, ""))
		number, grouped := strings.CutPrefix(key, "group "+id+" ")
		if c.revision <= after || !alone && !grouped {
			continue
		}
		change := jobsum.Change{Revision: c.revision, Group: -1, Organization: organization}
		runs := make([]core.OrganizationRun, 1)
		var target any = &runs[0]
		if grouped {
			change.Organization, target = "", &runs
			change.Group, _ = strconv.Atoi(number)
		}
		if err := json.Unmarshal(c.value, target); err != nil {
			return nil, err
		}
		for i := range runs {
			change.Sum.Add(&runs[i])
			if !runs[i].Moved {
				change.Kinds = change.Kinds.Add(runs[i].Kinds, core.MaxKindsBytes)
			}
		}
		changes = append(changes, change)
	}
	s.sumsRead += len(changes)
	slices.SortFunc(changes, func(a, b jobsum.Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return changes, nil
}

func deadLetterKey(repository, organization, id string) string {
	return fmt.Sprintf("%s %q %q", repository, organization, id)
}

func (s *store) Put(d core.DeadLetter) error {
	if s.put != nil {
		if err := s.put(d); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.letters[deadLetterKey(d.Repository, d.Organization, d.RecordID)] = d
	return nil
}

func (s *store) Clear(repository, organization, id string, at core.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.letters[deadLetterKey(repository, organization, id)].Version > at {
		return
	}
	delete(s.letters, deadLetterKey(repository, organization, id))
}

func (s *store) Has(repository, organization, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.letters[deadLetterKey(repository, organization, id)]
	return ok
}

func (s *store) Find(repository, organization, id string) (core.DeadLetter, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.letters[deadLetterKey(repository, organization, id)]
	if !ok {
		return d, core.NewError(core.CodeNotFound, "dead letter not found")
	}
	return d, nil
}

// dead returns the dead letters by record id.
func (s *store) dead() map[string]core.DeadLetter {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[string]core.DeadLetter, len(s.letters))
	for _, d := range s.letters {
		all[d.RecordID] = d
	}
	return all
}

func (s *store) notePage(list string, reading, page int, ids []uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.notes[list] == nil {
		s.notes[list] = map[[2]int][]uint64{}
	}
	s.notes[list][[2]int{reading, page}] = slices.Clone(ids)
}

func (s *store) notedIDs(list string, reading, last int) map[uint64]struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := map[uint64]struct{}{}
	for at, page := range s.notes[list] {
		for _, id := range page {
			if at[0] == reading && at[1] <= last {
				ids[id] = struct{}{}
			}
		}
	}
	return ids
}

func (s *store) noteLate(list string, page, epoch int, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(list, page, epoch, ids)
}

// note is noteLate for a caller that holds the lock.
func (s *store) note(list string, page, epoch int, ids []string) {
	if s.late[list] == nil {
		s.late[list] = map[[2]int][]string{}
	}
	s.late[list][[2]int{page, epoch}] = slices.Clone(ids)
}

func (s *store) lateIDs(list string, pages map[int]int) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for page, epoch := range pages {
		ids = append(ids, s.late[list][[2]int{page, epoch}]...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// invalidNotes ends the key of the notes of the records that an organization's list showed as not to be indexed.
const invalidNotes = " invalid"

// sweptNotes ends the key of the notes of the documents that a sweep removes.
const sweptNotes = " swept"

func (s *store) noteSwept(list string, step int, ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(list+sweptNotes, step, len(s.late[list+sweptNotes]), ids)
}

func (s *store) swept(job, organization string, step int) map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	swept := map[string][]string{}
	for list, notes := range s.late {
		of, is := strings.CutPrefix(list, job)
		of, noted := strings.CutSuffix(of, sweptNotes)
		for at, ids := range notes {
			if is && noted && at[0] == step && (organization == "" || of == organization) {
				swept[of] = append(swept[of], ids...)
			}
		}
	}
	for of, ids := range swept {
		slices.Sort(ids)
		swept[of] = slices.Compact(ids)
	}
	return swept
}

func (s *store) forget(list string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	forgotten := func(noted string) bool {
		job, isJob := strings.CutSuffix(list, " ") // of no organization: all of the job
		return noted == list || noted == list+invalidNotes || isJob && strings.HasPrefix(noted, job+" ")
	}
	maps.DeleteFunc(s.notes, func(noted string, _ map[[2]int][]uint64) bool { return forgotten(noted) })
	maps.DeleteFunc(s.late, func(noted string, _ map[[2]int][]string) bool { return forgotten(noted) })
	return nil
}

// noteCount returns how many pages' ids are kept.
func (s *store) noteCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, pages := range s.notes {
		n += len(pages)
	}
	for _, pages := range s.late {
		n += len(pages)
	}
	return n
}
