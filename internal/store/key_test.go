package store_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/store"
	"tutti/internal/tools/storetest"
)

func TestKeys(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
		hash := bytes.Repeat([]byte{0, 0xff}, 16)
		old := core.APIKey{ID: "z", Name: "écran", Scopes: []string{"tutti.S1.WRITE", "tutti.READ"}, Hash: hash, CreatedAt: at}
		later := core.APIKey{ID: "b", Name: "", Hash: hash, CreatedAt: at.Add(time.Second), ExpiresAt: at.AddDate(1, 0, 0)}
		same := core.APIKey{ID: "a", Scopes: []string{}, Hash: hash, CreatedAt: later.CreatedAt, RevokedAt: at}
		if keys, err := s.Keys(t.Context()); err != nil || len(keys) != 0 {
			t.Fatal(keys, err)
		}
		for _, key := range []core.APIKey{old, later, same} {
			if err := s.AddKey(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			got, err := s.Key(t.Context(), key.ID)
			if diff := cmp.Diff(key, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		}
		keys, err := s.Keys(t.Context())
		if diff := cmp.Diff([]core.APIKey{same, later, old}, keys); diff != "" || err != nil {
			t.Error(err, diff)
		}
	})
}

func TestRevokeKey(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		want := core.APIKey{ID: "a", Hash: make([]byte, 32), CreatedAt: at, RevokedAt: at.Add(time.Hour)}
		if err := s.AddKey(t.Context(), core.APIKey{ID: "a", Hash: want.Hash, CreatedAt: at}); err != nil {
			t.Fatal(err)
		}
		for _, again := range []time.Time{want.RevokedAt, at.Add(time.Minute), at.Add(2 * time.Hour), {}} {
			got, err := s.RevokeKey(t.Context(), "a", again)
			if diff := cmp.Diff(want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		}
		if got, err := s.Key(t.Context(), "a"); err != nil || !cmp.Equal(want, got) {
			t.Error(err, got)
		}
		if err := s.AddKey(t.Context(), core.APIKey{ID: "now", Hash: want.Hash}); err != nil {
			t.Fatal(err)
		}
		if got, err := s.RevokeKey(t.Context(), "now", time.Time{}); err != nil || got.RevokedAt.IsZero() {
			t.Error(err, got)
		}
	})
}

func TestKeyErrors(t *testing.T) {
	storetest.Databases(t, func(t *testing.T, s *store.Store) {
		good := core.APIKey{ID: "a", Hash: make([]byte, 32)}
		if err := s.AddKey(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		for name, tt := range map[string]struct {
			do      func() error
			code    core.Code
			message string
		}{
			"taken":      {func() error { return s.AddKey(t.Context(), good) }, core.CodeConflict, "storing an API key: it already exists"},
			"short hash": {func() error { return s.AddKey(t.Context(), core.APIKey{ID: "b"}) }, core.CodeInvalid, "the hash of an API key is not a SHA-256"},
			"name": {
				func() error { return s.AddKey(t.Context(), core.APIKey{ID: "b", Name: "\xff", Hash: good.Hash}) },
				core.CodeInvalid, "the name of an API key must be UTF-8 without zero bytes",
			},
			"unknown":   {func() error { _, err := s.Key(t.Context(), "A"); return err }, core.CodeNotFound, `there is no API key "A"`},
			"not text":  {func() error { _, err := s.Key(t.Context(), "a\x00"); return err }, core.CodeNotFound, `there is no API key "a\x00"`},
			"to revoke": {func() error { _, err := s.RevokeKey(t.Context(), "b", time.Now()); return err }, core.CodeNotFound, `there is no API key "b"`},
		} {
			t.Run(name, func(t *testing.T) { wantError(t, tt.do(), tt.code, tt.message) })
		}
	})
}
