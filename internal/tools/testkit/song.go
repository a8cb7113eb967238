package testkit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"tutti/internal/tools/testkit/dataset"
)

// songStore holds the data of a SongServer. Analyses of a study keep their order.
type songStore struct {
	mu      sync.RWMutex
	studies []string
	byStudy map[string][]*dataset.Analysis
	byID    map[string]*dataset.Analysis
	schemas []SongSchema
	// listed caches a study's list in some states until anything changes: otherwise each page of a large study would iterate over all of
	// it.
	listed map[string][]*dataset.Analysis
}

// SongSchema is a version of an analysis type.
type SongSchema struct {
	Name    string          `json:"name"`
	Version int             `json:"version"`
	Schema  json.RawMessage `json:"schema"`
}

// Register adds the next version of an analysis type.
func (s *songStore) Register(name, schema string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := SongSchema{Name: name, Version: 1, Schema: json.RawMessage(schema)}
	for _, t := range s.schemas {
		if t.Name == name {
			next.Version = t.Version + 1
		}
	}
	s.schemas = append(s.schemas, next)
}

// Schemas returns all versions of the analysis types, by version.
func (s *songStore) Schemas() []SongSchema {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := slices.Clone(s.schemas)
	slices.SortStableFunc(all, func(a, b SongSchema) int { return a.Version - b.Version })
	return all
}

func newSongStore() *songStore {
	return &songStore{byStudy: map[string][]*dataset.Analysis{}, byID: map[string]*dataset.Analysis{}, listed: map[string][]*dataset.Analysis{}}
}

// AddStudy adds a study without analyses. An existing study is unchanged.
func (s *songStore) AddStudy(study string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.listed)
	s.addStudy(study)
}

func (s *songStore) addStudy(study string) {
	if _, ok := s.byStudy[study]; !ok {
		s.studies = append(s.studies, study)
		s.byStudy[study] = nil
	}
}

// DropStudy removes a study and all its analyses.
func (s *songStore) DropStudy(study string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.listed)
	for _, a := range s.byStudy[study] {
		delete(s.byID, a.ID)
	}
	delete(s.byStudy, study)
	s.studies = slices.DeleteFunc(s.studies, func(name string) bool { return name == study })
}

// Put adds an analysis at the end of the study's list, or replaces the one with its id in place. The analysis is added to the list of
// study, whatever the body says, so that inconsistent upstreams can be tested. body must not change afterwards. The error is
// ErrNoAnalysis if body lacks analysisId, studyId or analysisState.
func (s *songStore) Put(study string, body []byte) error {
	a, err := dataset.ParseAnalysis(body)
	if err != nil {
		return fmt.Errorf("putting an analysis: %w", err)
	}
	a.Study = study
	s.PutAll(a)
	return nil
}

// PutAll is like Put for parsed analyses, such as those of GenerateAnalyses.
func (s *songStore) PutAll(analyses ...dataset.Analysis) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.listed)
	for _, a := range analyses {
		if held := s.byID[a.ID]; held != nil && held.Study == a.Study {
			*held = a
			continue
		}
		s.remove(a.ID)
		s.insert(a, -1)
	}
}

// Insert inserts an analysis at a position of the study's list, counted over all states from 0; the rest moves up.
func (s *songStore) Insert(study string, position int, body []byte) error {
	a, err := dataset.ParseAnalysis(body)
	if err != nil {
		return fmt.Errorf("inserting an analysis: %w", err)
	}
	a.Study = study
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.listed)
	s.remove(a.ID)
	s.insert(a, position)
	return nil
}

func (s *songStore) insert(a dataset.Analysis, position int) {
	s.addStudy(a.Study)
	list := s.byStudy[a.Study]
	if position < 0 || position > len(list) {
		position = len(list)
	}
	s.byStudy[a.Study] = slices.Insert(list, position, &a)
	s.byID[a.ID] = &a
}

// Delete removes an analysis, and reports whether it existed.
func (s *songStore) Delete(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.listed)
	return s.remove(id)
}

func (s *songStore) remove(id string) bool {
	held := s.byID[id]
	if held == nil {
		return false
	}
	delete(s.byID, id)
	s.byStudy[held.Study] = slices.DeleteFunc(s.byStudy[held.Study], func(a *dataset.Analysis) bool { return a == held })
	return true
}

// SetState changes the state of an analysis, also in its body, and reports whether it exists.
func (s *songStore) SetState(id, state string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.listed)
	held := s.byID[id]
	if held == nil {
		return false
	}
	*held = held.WithState(state)
	return true
}

// Studies returns the ids of all studies in insertion order.
func (s *songStore) Studies() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]string{}, s.studies...)
}

// Analysis returns the analysis with an id.
func (s *songStore) Analysis(id string) (dataset.Analysis, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	held := s.byID[id]
	if held == nil {
		return dataset.Analysis{}, false
	}
	return *held, true
}

// Analyses returns a study's analyses in the given states, or in any state when none is given, in their order.
func (s *songStore) Analyses(study string, states ...string) []dataset.Analysis {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []dataset.Analysis
	for _, a := range s.byStudy[study] {
		if len(states) == 0 || slices.Contains(states, a.State) {
			list = append(list, *a)
		}
	}
	return list
}

// hasStudy reports whether a study exists.
func (s *songStore) hasStudy(study string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.byStudy[study]
	return ok
}

// page returns the bodies of rows [offset, offset+limit) of a study's list in the given states, and the list's length.
func (s *songStore) page(study string, states []string, offset, limit int) (bodies [][]byte, total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list(study, states)
	rows := list[min(offset, len(list)):]
	rows = rows[:min(limit, len(rows))]
	bodies = make([][]byte, len(rows))
	for i, a := range rows {
		bodies[i] = a.Body
	}
	return bodies, len(list)
}

// list returns a study's analyses in the given states, and caches them. The store must be locked.
func (s *songStore) list(study string, states []string) []*dataset.Analysis {
	key := study + "\x00" + strings.Join(states, ",")
	list, ok := s.listed[key]
	if ok {
		return list
	}
	for _, a := range s.byStudy[study] {
		if slices.Contains(states, a.State) {
			list = append(list, a)
		}
	}
	s.listed[key] = list
	return list
}
