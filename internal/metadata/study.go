package metadata

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync"
	"unicode/utf8"

	"tutti/internal/core"
	"tutti/internal/store"
)

const (
	// maxKnownStudies bounds the studies that are known to exist without asking the store.
	maxKnownStudies = 10_000
	// maxDescribingBytes bounds each of the texts that describe a study.
	maxDescribingBytes = 64 << 10
)

// studies remembers which studies exist. Nothing removes a study, so what is remembered stays true.
type studies struct {
	mu    sync.RWMutex
	known map[string]struct{}
}

func newStudies() *studies { return &studies{known: map[string]struct{}{}} }

func (s *studies) has(id string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, ok := s.known[id]
	return ok
}

func (s *studies) add(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxKnownStudies {
		clear(s.known)
	}
	s.known[id] = struct{}{}
}

// Studies returns the ids of all studies in order, an empty list when there are none.
func (r *Repository) Studies(ctx context.Context) ([]string, error) {
	const doing = "listing the studies"
	rows, err := r.store.Read().QueryContext(ctx, "SELECT id FROM study ORDER BY id")
	if err != nil {
		return nil, store.Fault(doing, err)
	}
	defer func() { _ = rows.Close() }()
	ids := []string{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, store.Fault(doing, err)
		}
		ids = append(ids, id)
	}
	return ids, store.Fault(doing, rows.Err())
}

// Study returns one study, CodeNotFound when there is none.
func (r *Repository) Study(ctx context.Context, id string) (core.Study, error) {
	if !storable(id) {
		return core.Study{}, noStudy()
	}
	s := core.Study{ID: id}
	err := r.store.Read().QueryRowContext(ctx, "SELECT name, organization, description FROM study WHERE id = $1", id).
		Scan(&s.Name, &s.Organization, &s.Description)
	if errors.Is(err, sql.ErrNoRows) {
		return core.Study{}, noStudy()
	}
	if err != nil {
		return core.Study{}, store.Fault("reading a study", err)
	}
	return s, nil
}

// CreateStudy adds a study. CodeInvalid for an id that does not match ^[A-Za-z0-9][A-Za-z0-9._-]*$, is longer than
// core.MaxIDBytes or has a meaning of its own; CodeConflict when the study is there already.
func (r *Repository) CreateStudy(ctx context.Context, s core.Study) error {
	if err := r.checkStudy(s); err != nil {
		return err
	}
	created := store.Micros(r.cfg.Now())
	err := r.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		result, err := tx.ExecContext(ctx,
			"INSERT INTO study (id, name, organization, description, created_at) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
			s.ID, s.Name, s.Organization, s.Description, created)
		if err != nil {
			return store.Fault("creating a study", err)
		}
		if added, err := result.RowsAffected(); err != nil || added == 1 {
			return store.Fault("creating a study", err)
		}
		return fault(core.CodeConflict, idStudyExists, "the study exists already")
	})
	if err != nil {
		return err
	}
	r.studies.add(s.ID)
	return nil
}

func (r *Repository) checkStudy(s core.Study) error {
	switch {
	case s.ID == "" || strings.ContainsFunc(s.ID, notInStudy) || !isAlphanumeric(rune(s.ID[0])):
		return malformed("the id of a study begins with a letter or a digit and holds only letters, digits, dots, underscores and hyphens")
	case len(s.ID) > core.MaxIDBytes:
		return malformed("the id of a study has at most 512 bytes")
	case s.ID == r.cfg.SystemScope:
		return malformed("a study must not be called like the system's scope")
	case s.ID == "all":
		return malformed(`a study must not be called "all": that is the path of the list of studies`)
	}
	for _, text := range []string{s.Name, s.Organization, s.Description} {
		if !storable(text) || len(text) > maxDescribingBytes {
			return malformed("the name, the organization and the description of a study are text of at most 64 KiB without NUL characters")
		}
	}
	return nil
}

func notInStudy(c rune) bool { return !isAlphanumeric(c) && c != '.' && c != '_' && c != '-' }

func isAlphanumeric(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// storable reports whether both databases take text as a value.
func storable(text string) bool { return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 }

// needStudy returns CodeNotFound when a study does not exist.
func (r *Repository) needStudy(ctx context.Context, conn store.Conn, id string) error {
	if r.studies.has(id) {
		return nil
	}
	if !storable(id) {
		return noStudy()
	}
	var one int
	err := conn.QueryRowContext(ctx, "SELECT 1 FROM study WHERE id = $1", id).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return noStudy()
	}
	if err != nil {
		return store.Fault("reading a study", err)
	}
	r.studies.add(id)
	return nil
}
