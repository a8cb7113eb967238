package metadata

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"tutti/internal/base/cache"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/internal/metadata/analysis"
	"tutti/internal/store"
)

const (
	// maxKnownStudies bounds the cache of existing studies.
	maxKnownStudies = 10_000
	// maxDescribingBytes bounds each of a study's name, organization, description and info.
	maxDescribingBytes = 64 << 10
)

// studies stores the studies of a Repository.
type studies struct {
	store *store.Store
	// now is the clock; no study may have the id systemScope.
	now         func() time.Time
	systemScope string
	// known caches which studies exist. Studies are never removed, so entries stay valid.
	known *cache.LRU[string, struct{}]
}

func newStudies(s *store.Store, cfg Config) *studies {
	return &studies{store: s, now: cfg.Now, systemScope: cfg.SystemScope, known: cache.NewLRU[string, struct{}](maxKnownStudies)}
}

// Studies returns the ids of all studies in order, an empty slice when there are none.
func (t *studies) Studies(ctx context.Context) ([]string, error) {
	const doing = "listing the studies"
	rows, err := t.store.Read().QueryContext(ctx, "SELECT id FROM study ORDER BY id")
	if err != nil {
		return nil, store.WrapError(doing, err)
	}
	defer func() { _ = rows.Close() }()
	ids := []string{}
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, store.WrapError(doing, err)
		}
		ids = append(ids, id)
	}
	return ids, store.WrapError(doing, rows.Err())
}

// Study returns one study, CodeNotFound when it does not exist.
func (t *studies) Study(ctx context.Context, id string) (datamodel.Study, error) {
	if !analysis.Storable(id) {
		return datamodel.Study{}, studyNotFound()
	}
	s := datamodel.Study{ID: id}
	var info string
	err := t.store.Read().QueryRowContext(ctx, "SELECT name, organization, description, info FROM study WHERE id = $1", id).
		Scan(&s.Name, &s.Organization, &s.Description, &info)
	if errors.Is(err, sql.ErrNoRows) {
		return datamodel.Study{}, studyNotFound()
	}
	if err != nil {
		return datamodel.Study{}, store.WrapError("reading a study", err)
	}
	if info != "" {
		s.Info = json.RawMessage(info)
	}
	return s, nil
}

// CreateStudy adds a study. CodeInvalid for an id that does not match ^[A-Za-z0-9][A-Za-z0-9._-]*$, is longer than
// core.MaxIDBytes or is reserved; CodeConflict when the study already exists.
func (t *studies) CreateStudy(ctx context.Context, s datamodel.Study) error {
	if err := t.check(s); err != nil {
		return err
	}
	created := store.Micros(t.now())
	err := t.store.Update(ctx, func(ctx context.Context, tx *store.Tx) error {
		result, err := tx.ExecContext(ctx,
			"INSERT INTO study (id, name, organization, description, info, created_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
			s.ID, s.Name, s.Organization, s.Description, string(s.Info), created)
		if err != nil {
			return store.WrapError("creating a study", err)
		}
		if added, err := result.RowsAffected(); err != nil || added == 1 {
			return store.WrapError("creating a study", err)
		}
		return newError(core.CodeConflict, idStudyExists, "the study already exists")
	})
	if err != nil {
		return err
	}
	t.known.Put(s.ID, struct{}{}, 1)
	return nil
}

func (t *studies) check(s datamodel.Study) error {
	switch {
	case s.ID == "" || strings.ContainsFunc(s.ID, notInStudy) || !isAlphanumeric(rune(s.ID[0])):
		return parameterError("the id of a study must start with a letter or a digit and contain only letters, digits, dots, underscores and hyphens")
	case len(s.ID) > core.MaxIDBytes:
		return parameterError("the id of a study must have at most 512 bytes")
	case s.ID == t.systemScope:
		return parameterError("the id of a study must not be the system's scope")
	case s.ID == "all":
		return parameterError(`the id of a study must not be "all", which is the path of the list of studies`)
	}
	if len(s.Info) > maxDescribingBytes {
		return parameterError(fmt.Sprintf("the info of a study must have at most %d bytes", maxDescribingBytes))
	}
	for _, text := range []string{s.Name, s.Organization, s.Description} {
		if !analysis.Storable(text) || len(text) > maxDescribingBytes {
			return parameterError("the name, the organization and the description of a study must be UTF-8 text of at most 64 KiB without NUL characters")
		}
	}
	return nil
}

func notInStudy(c rune) bool { return !isAlphanumeric(c) && c != '.' && c != '_' && c != '-' }

func isAlphanumeric(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// requireStudy returns CodeNotFound when a study does not exist.
func (t *studies) requireStudy(ctx context.Context, conn store.Conn, id string) error {
	if _, exists := t.known.Get(id); exists {
		return nil
	}
	if !analysis.Storable(id) {
		return studyNotFound()
	}
	var one int
	err := conn.QueryRowContext(ctx, "SELECT 1 FROM study WHERE id = $1", id).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return studyNotFound()
	}
	if err != nil {
		return store.WrapError("reading a study", err)
	}
	t.known.Put(id, struct{}{}, 1)
	return nil
}
