package ingest

import (
	"fmt"
	"slices"
	"strings"

	"tutti/internal/core"
)

// eventTargets are the repositories that the events of one source may be for.
type eventTargets struct {
	// repositories are the ones that share the source.
	repositories []core.Repository
	// requests reports whether requests of FormatMaestro are accepted for any configured repository.
	requests bool
}

// resolve returns the repositories that an event is for, or why there are none. An event that does not say which of
// several repositories it is for is for each: the record as fetched decides.
func (s *sender) resolve(e Event, a eventTargets) ([]core.Repository, *Rejection) {
	found, rejection := s.matchRepositories(e, a)
	if rejection != nil {
		rejection.Organization, rejection.RecordID = e.Organization, e.RecordID
	}
	return found, rejection
}

func (s *sender) matchRepositories(e Event, a eventTargets) ([]core.Repository, *Rejection) {
	if e.Format == FormatMaestro && a.requests {
		if repo, err := s.repository(e.Repository); err == nil {
			return []core.Repository{repo}, nil
		}
		return nil, &Rejection{
			Kind: RejectUnknownRepository, Member: memberRepository, Server: e.Repository,
			Message: fmt.Sprintf("%s %q is not configured", memberRepository, e.Repository),
		}
	}
	if len(a.repositories) == 0 {
		return nil, rejectMember(memberRepository, "is missing: this topic accepts only requests")
	}
	fitting := slices.DeleteFunc(slices.Clone(a.repositories), func(r core.Repository) bool { return !e.fits(r.Type) })
	if len(fitting) == 0 {
		return nil, e.wrongType(a.repositories)
	}
	found := slices.DeleteFunc(fitting, func(r core.Repository) bool { return !s.sentBy(e, r) })
	if len(found) == 0 {
		return nil, e.otherServer()
	}
	return found, nil
}

// fits reports whether repositories of type t send events of e's format.
func (e Event) fits(t core.RepositoryType) bool {
	switch e.Format {
	case FormatLyric:
		return t == core.TypeLyric
	case FormatSong:
		return t != core.TypeLyric
	case FormatMaestro:
		return true
	default:
		return false
	}
}

// sentBy reports whether e can be for a repository of a fitting type.
func (s *sender) sentBy(e Event, repo core.Repository) bool {
	if e.Format == FormatLyric {
		category := s.cfg.Sources[repo.Code].LyricCategory
		return category == "" || len(e.Categories) == 0 || slices.Contains(e.Categories, category)
	}
	return e.Repository == repo.Code || e.Format == FormatSong && e.Repository == ""
}

// requestedScope returns what an event requests of its repository: a change of an entity that is not indexed itself
// requests its organization.
func (s *sender) requestedScope(e Event, repository string) Event {
	entity := s.cfg.Sources[repository].LyricEntity
	if e.Format == FormatLyric && entity != "" && e.Entity != "" && e.Entity != entity {
		e.RecordID = ""
	}
	return e
}

func (e Event) wrongType(repositories []core.Repository) *Rejection {
	member := memberAnalysis
	if e.Format == FormatLyric {
		member = memberSystem
	}
	return rejectMember(member, fmt.Sprintf("is not in the events of a repository of type %s", repositories[0].Type))
}

func (e Event) otherServer() *Rejection {
	rejection := Rejection{Kind: RejectOtherServer, Member: memberRepository, Server: e.Repository}
	switch e.Format {
	case FormatLyric:
		rejection.Member, rejection.Server = memberCategory, strings.Join(e.Categories, " ")
	case FormatSong:
		rejection.Member = memberServer
	case FormatMaestro:
	}
	rejection.Message = fmt.Sprintf("%s names another server, %q", rejection.Member, rejection.Server)
	return &rejection
}
