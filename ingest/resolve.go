package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tutti/ingest/event"
	"tutti/internal/core"
)

// eventTargets are the repositories that the events of one source may be for.
type eventTargets struct {
	// repositories are the ones that share the source.
	repositories []core.Repository
	// requests reports whether requests of FormatMaestro are accepted for any configured repository.
	requests bool
}

// resolve returns the repositories that an event is for, or why there are none. An event that does not name one of several
// repositories is for all of them: the fetched records decide.
func (s *sender) resolve(e event.Event, a eventTargets) ([]core.Repository, *event.Rejection) {
	found, rejection := s.matchRepositories(e, a)
	if rejection != nil {
		rejection.Organization, rejection.RecordID = e.Organization, e.RecordID
	}
	return found, rejection
}

func (s *sender) matchRepositories(e event.Event, a eventTargets) ([]core.Repository, *event.Rejection) {
	if e.Format == event.FormatMaestro && a.requests {
		if repo, err := s.repository(e.Repository); err == nil {
			return []core.Repository{repo}, nil
		}
		return nil, &event.Rejection{
			Kind: event.UnknownRepository, Member: event.MemberRepository, Server: e.Repository,
			Message: fmt.Sprintf("%s %q is not configured", event.MemberRepository, e.Repository),
		}
	}
	if len(a.repositories) == 0 {
		return nil, event.Reject(event.MemberRepository, "is missing: this topic accepts only requests")
	}
	fitting := slices.DeleteFunc(slices.Clone(a.repositories), func(r core.Repository) bool { return !s.fits(e, r) })
	if len(fitting) == 0 {
		return nil, s.wrongType(e, a.repositories[0])
	}
	found := slices.DeleteFunc(fitting, func(r core.Repository) bool { return !s.sentBy(e, r) })
	if len(found) == 0 {
		return nil, s.otherServer(e)
	}
	return found, nil
}

// fits reports whether a repository of its type sends events of e's format.
func (s *sender) fits(e event.Event, repo core.Repository) bool {
	return e.Format == event.FormatMaestro || e.Format == s.cfg.Formats[repo.Type].Name
}

// sentBy reports whether e can be for a repository of a fitting type.
func (s *sender) sentBy(e event.Event, repo core.Repository) bool {
	if e.Format == event.FormatMaestro {
		return e.Repository == repo.Code
	}
	return len(e.Servers) == 0 || slices.Contains(e.Servers, cmp.Or(s.cfg.Sources[repo.Code].Server, repo.Code))
}

func (s *sender) wrongType(e event.Event, repo core.Repository) *event.Rejection {
	return event.Reject(s.events.Format(e).RecordID, fmt.Sprintf("is not in the events of a repository of type %s", repo.Type))
}

func (s *sender) otherServer(e event.Event) *event.Rejection {
	rejection := event.Rejection{Kind: event.OtherServer, Member: event.MemberRepository, Server: e.Repository}
	if e.Format != event.FormatMaestro {
		format := s.events.Format(e)
		rejection.Member, rejection.ServerTerm, rejection.Server = format.Servers[0].Name, format.ServerTerm, strings.Join(e.Servers, " ")
	}
	rejection.Message = fmt.Sprintf("%s names another server, %q", rejection.Member, rejection.Server)
	return &rejection
}
