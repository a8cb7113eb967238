package console

import (
	"net/http"
	"strings"
	"time"

	"tutti/http/api"
	"tutti/http/indexing"
	"tutti/internal/core"
	"tutti/internal/report/recordtrace"
)

// recordView is the content of the page that says why a record is or is not in the index.
type recordView struct {
	Base                         string
	Now                          time.Time
	Repository, Organization, ID string
	Repositories                 []core.RepositoryStatus
	// Trace is nil until a record is asked for.
	Trace *recordtrace.Trace
	// Searched is set after a search by an id; Found are the records with it that the caller may see, and Failed the codes of the repositories
	// that could not be searched and may have more.
	Searched bool
	Found    []recordtrace.Location
	Failed   []string
}

func (s *recordPages) record(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	v := recordView{
		Base: s.base, Now: s.now(), Repository: strings.TrimSpace(q.Get("repository")),
		Organization: strings.TrimSpace(q.Get("organization")), ID: strings.TrimSpace(q.Get("id")),
	}
	var err error
	if v.Repositories, err = indexing.VisibleRepositories(r, s.ports.Repositories); err != nil {
		return err
	}
	if v.Repository != "" && v.Organization != "" && v.ID != "" {
		ref, err := writableRecord(r, v.Repository, v.Organization, v.ID)
		if err != nil {
			return err
		}
		_, restricted := api.RestrictedCaller(r)
		trace, err := s.ports.Traces.Trace(r.Context(), ref, restricted)
		if err != nil {
			return err
		}
		v.Trace = &trace
	} else if v.ID != "" {
		if err := s.locate(r, &v); err != nil {
			return err
		}
		if len(v.Found) == 1 && len(v.Failed) == 0 {
			s.see(w, s.tracePath(v.Found[0].Repository, v.Found[0].Organization, v.Found[0].ID), "")
			return nil
		}
	}
	s.render(w, r, http.StatusOK, "record", page{Title: "Record", Active: "records", Content: v})
	return nil
}

// locate sets the records with the id of a view that the caller may see, and that have its repository and its organization if it has them.
func (s *recordPages) locate(r *http.Request, v *recordView) error {
	all, err := s.records.Locate(r.Context(), v.ID)
	if err != nil {
		return err
	}
	v.Searched = true
	for _, code := range all.Failed {
		if v.Repository == "" || code == v.Repository {
			v.Failed = append(v.Failed, code)
		}
	}
	for _, at := range all.Found {
		if (v.Repository == "" || at.Repository == v.Repository) && (v.Organization == "" || at.Organization == v.Organization) &&
			api.RequireWrite(r, at.Organization) == nil {
			v.Found = append(v.Found, at)
		}
	}
	return nil
}

// writableRecord returns a record that the caller may read and write.
func writableRecord(r *http.Request, repository, organization, id string) (core.RecordRef, error) {
	ref, err := core.NewRecordRef(repository, organization, id)
	if err != nil {
		return ref, err
	}
	return ref, api.RequireWrite(r, organization)
}

// indexRecord requests that a record is fetched and written again, or its documents removed.
func (s *recordPages) indexRecord(w http.ResponseWriter, r *http.Request) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	ref, err := writableRecord(r, f.Get("repository"), f.Get("organization"), f.Get("id"))
	if err != nil {
		return err
	}
	if _, err := s.ports.Ingest.Record(r.Context(), core.KindIndex, ref, api.RequestIDOf(r)); err != nil {
		return err
	}
	s.see(w, s.tracePath(ref.Repository(), ref.Organization(), ref.ID())+"&notice=record", "")
	return nil
}
