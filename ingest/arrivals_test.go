package ingest_test

import (
	"context"
	"testing"
	"time"

	"tutti/ingest"
	"tutti/internal/core"
)

// TestLastNotification: what is requested from outside is noted, by each of its ways in, and what tutti requests by itself is not.
func TestLastNotification(t *testing.T) {
	for name, tt := range map[string]struct {
		request func(*testing.T, *ingest.Service) error
		noted   bool
	}{
		"record": {func(t *testing.T, s *ingest.Service) error {
			_, err := s.Record(t.Context(), core.KindIndex, record(t, "song.ca", "S", "A"), "")
			return err
		}, true},
		"run": {func(t *testing.T, s *ingest.Service) error {
			_, err := s.Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseREST, "")
			return err
		}, true},
		"webhook": {func(t *testing.T, s *ingest.Service) error {
			_, err := s.Notify(t.Context(), "song.ca", []byte(`{"analysisId":"A","studyId":"S","state":"PUBLISHED"}`), "", "")
			return err
		}, true},
		"topic": {func(t *testing.T, s *ingest.Service) error {
			feed, err := s.NewFeed(ingest.FeedConfig{Topic: "t", Repositories: []string{"song.ca"}})
			if err != nil {
				return err
			}
			return feed.Handle(t.Context(), messagesOf(`{"analysisId":"A","studyId":"S","state":"PUBLISHED"}`))
		}, true},
		"reconcile": {func(t *testing.T, s *ingest.Service) error {
			_, err := s.Run(t.Context(), core.ScopeRepository, "song.ca", "", core.RunFlags{}, core.CauseReconcile, "")
			return err
		}, false},
		"unknown": {func(t *testing.T, s *ingest.Service) error {
			_, _ = s.Record(t.Context(), core.KindIndex, record(t, "song.de", "S", "A"), "")
			return nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			if err := tt.request(t, w.service); err != nil {
				t.Fatal(err)
			}
			at, err := w.service.LastNotification(t.Context(), "song.ca")
			if err != nil || at.IsZero() == tt.noted || tt.noted && !at.Equal(noon) {
				t.Errorf("%v, %v", at, err)
			}
			if at, _ := w.service.LastNotification(t.Context(), "song.jp"); !at.IsZero() {
				t.Errorf("of another repository: %v", at)
			}
		})
	}
}

// TestLastNotificationIsShared: processes share the newest time, also over restarts, and never replace it by an older one.
func TestLastNotificationIsShared(t *testing.T) {
	w := newWorld(t, nil)
	at := func(now time.Time) *ingest.Service {
		return newService(t, w.queueFake, ingest.Config{Now: func() time.Time { return now }})
	}
	newer, older, fresh := at(noon), at(noon.Add(-time.Hour)), at(noon)
	for _, s := range []*ingest.Service{newer, older} {
		if _, err := s.Record(t.Context(), core.KindIndex, record(t, "song.ca", "S", "A"), ""); err != nil {
			t.Fatal(err)
		}
		if err := s.StoreNotifications(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range map[string]*ingest.Service{"newer": newer, "older": older, "fresh": fresh} {
		if got, err := s.LastNotification(t.Context(), "song.ca"); err != nil || !got.Equal(noon) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	// What was stored is not stored again.
	w.setCell = func(name, _ string) error { t.Errorf("%s is written again", name); return nil }
	if err := newer.StoreNotifications(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestStoreNotificationsErrors: a time that could not be stored is stored by a later call; a conflict is no error.
func TestStoreNotificationsErrors(t *testing.T) {
	w := newWorld(t, nil)
	if _, err := w.service.Record(t.Context(), core.KindIndex, record(t, "song.ca", "S", "A"), ""); err != nil {
		t.Fatal(err)
	}
	for _, code := range []core.Code{core.CodeUnavailable, core.CodeConflict} {
		w.setCell = func(string, string) error { return core.NewError(code, "no") }
		if err := w.service.StoreNotifications(t.Context()); (err != nil) != (code == core.CodeUnavailable) {
			t.Errorf("%s: %v", code, err)
		}
	}
	w.setCell = nil
	if err := w.service.StoreNotifications(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got, err := newService(t, w.queueFake, ingest.Config{}).LastNotification(t.Context(), "song.ca"); err != nil || !got.Equal(noon) {
		t.Errorf("%v, %v", got, err)
	}
	w.cell = func(string) error { return core.NewError(core.CodeUnavailable, "no") }
	if _, err := w.service.LastNotification(t.Context(), "song.ca"); core.CodeOf(err) != core.CodeUnavailable {
		t.Error(err)
	}
}
