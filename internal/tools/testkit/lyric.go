package testkit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/tidwall/gjson"

	"tutti/internal/tools/testkit/dataset"
)

// lyricStore holds the records of each organization in Lyric's order, by the name of the entity and then in the order of insertion. So
// a record that is added or removed moves the rows after it.
type lyricStore struct {
	mu    sync.RWMutex
	last  int // the newest serial
	byOrg map[string][]*lyricRow
	byID  map[string]*lyricRow
}

// lyricRow is a record in the list of an organization, its own or another.
type lyricRow struct {
	dataset.LyricRecord

	listed string
	serial int
}

func (r *lyricRow) compare(o *lyricRow) int {
	return cmp.Or(cmp.Compare(r.EntityName, o.EntityName), cmp.Compare(r.serial, o.serial))
}

// has reports whether fields of the record's own data have the texts values.
func (r *lyricRow) has(values map[string]string) bool {
	for name, value := range values {
		found := gjson.GetBytes(r.Body, "data").Get(gjson.Escape(name))
		if !found.Exists() || found.IsObject() || found.IsArray() || found.String() != value {
			return false
		}
	}
	return true
}

func newLyricStore() *lyricStore {
	return &lyricStore{byOrg: map[string][]*lyricRow{}, byID: map[string]*lyricRow{}}
}

// AddOrganizations adds organizations without records. Lyric lists them when all records of an organization are of other entities than
// the category's central one. Existing organizations are unchanged.
func (s *lyricStore) AddOrganizations(organizations ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, organization := range organizations {
		if _, ok := s.byOrg[organization]; !ok {
			s.byOrg[organization] = nil
		}
	}
}

// DropOrganization removes an organization and all its records.
func (s *lyricStore) DropOrganization(organization string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range s.byOrg[organization] {
		delete(s.byID, row.SystemID)
	}
	delete(s.byOrg, organization)
}

// Put adds a record, or replaces the one with its id in place. The record is added to the list of organization, whatever the body says,
// so that inconsistent upstreams can be tested. body must not change afterwards; it is ErrNoLyricRecord when it is not Lyric's envelope
// of a record.
func (s *lyricStore) Put(organization string, body []byte) error {
	record, err := dataset.ParseLyricRecord(body)
	if err != nil {
		return fmt.Errorf("putting a record: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(organization, record)
	return nil
}

// PutAll is like Put for parsed records, such as those of GenerateRecords, each in the list of its own organization.
func (s *lyricStore) PutAll(records ...dataset.LyricRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, record := range records {
		s.put(record.Organization, record)
	}
}

func (s *lyricStore) put(organization string, record dataset.LyricRecord) {
	held := s.byID[record.SystemID]
	if held != nil && held.listed == organization && held.EntityName == record.EntityName {
		held.LyricRecord = record
		return
	}
	s.remove(record.SystemID)
	s.last++
	row := &lyricRow{LyricRecord: record, listed: organization, serial: s.last}
	list := s.byOrg[organization]
	at, _ := slices.BinarySearchFunc(list, row, (*lyricRow).compare)
	s.byOrg[organization] = slices.Insert(list, at, row)
	s.byID[record.SystemID] = row
}

// Remove removes a record, and reports whether it existed. Lyric itself lists an organization only while it has records; this one is kept
// until it is dropped.
func (s *lyricStore) Remove(systemID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remove(systemID)
}

func (s *lyricStore) remove(systemID string) bool {
	held := s.byID[systemID]
	if held == nil {
		return false
	}
	delete(s.byID, systemID)
	s.byOrg[held.listed] = slices.DeleteFunc(s.byOrg[held.listed], func(row *lyricRow) bool { return row == held })
	return true
}

// SetValid sets whether a record is valid, also in its body, and reports whether it exists.
func (s *lyricStore) SetValid(systemID string, valid bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := s.byID[systemID]
	if held == nil {
		return false
	}
	held.LyricRecord = held.WithValid(valid)
	return true
}

// Organizations returns the names of all organizations, in Lyric's order.
func (s *lyricStore) Organizations() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]string{}, slices.Sorted(maps.Keys(s.byOrg))...)
}

// Record returns the record with an id.
func (s *lyricStore) Record(systemID string) (dataset.LyricRecord, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	held := s.byID[systemID]
	if held == nil {
		return dataset.LyricRecord{}, false
	}
	return held.LyricRecord, true
}

// Records returns an organization's records, valid and invalid, in order.
func (s *lyricStore) Records(organization string) []dataset.LyricRecord {
	records, _ := s.page(&organization, "", nil, 0, -1)
	return records
}

// page returns rows [offset, offset+limit) of an organization's list, or of all organizations with nil, and the list's length; entity,
// when not empty, filters it, as values do, the texts of fields of the record's own data. A negative limit means no limit.
func (s *lyricStore) page(
	organization *string, entity string, values map[string]string, offset, limit int,
) (rows []dataset.LyricRecord, total int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []*lyricRow
	if organization != nil {
		list = s.byOrg[*organization]
	} else {
		list = slices.Concat(slices.Collect(maps.Values(s.byOrg))...)
		slices.SortFunc(list, (*lyricRow).compare)
	}
	if entity != "" {
		list = ofEntity(list, entity)
	}
	if values != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(row *lyricRow) bool { return !row.has(values) })
	}
	total = len(list)
	list = list[min(offset, len(list)):]
	if limit >= 0 {
		list = list[:min(limit, len(list))]
	}
	rows = make([]dataset.LyricRecord, len(list))
	for i, row := range list {
		rows[i] = row.LyricRecord
	}
	return rows, total
}

// ofEntity returns the part of a sorted list with one entity.
func ofEntity(list []*lyricRow, entity string) []*lyricRow {
	from, _ := slices.BinarySearchFunc(list, entity, func(row *lyricRow, name string) int {
		return cmp.Compare(row.EntityName, name)
	})
	behind, _ := slices.BinarySearchFunc(list, entity, func(row *lyricRow, name string) int {
		if row.EntityName <= name {
			return -1
		}
		return 1
	})
	return list[from:behind]
}
