package indexing

import (
	_ "embed"
	"net/http"

	"tutti/http/api"
	"tutti/http/media"
	"tutti/http/problem"
	"tutti/internal/core"
)

//go:embed openapi.yaml
var document []byte

// Surface is the surface of triggers, jobs, dead letters and notifications (CONTRACT section 1).
type Surface struct{ ports Ports }

// New returns a Surface that uses ports.
func New(ports Ports) *Surface { return &Surface{ports: ports} }

// OpenAPI implements Surface.
func (s *Surface) OpenAPI() []byte { return document }

// Register implements Surface.
func (s *Surface) Register(r *api.Router) {
	r.ExtendProblems(func(p problem.Problem, req *http.Request, _ error) problem.Problem {
		if r.Below(req, "/index") {
			return p.WithIndexMembers()
		}
		return p
	})
	t := triggers{ingest: s.ports.Ingest, basePath: r.BasePath()}
	const repository = "/index/repository/{repositoryCode}"
	const organization = repository + "/organization/{organization}"
	const record = organization + "/id/{id}"
	flags := api.LenientParams("force", "rebuild", "difference") // those of runFlags
	r.Handle(http.MethodGet, record, trace(s.ports.Traces), api.LenientParams(), api.WriterOf("organization"))
	r.Handle(http.MethodPost, record, t.record(core.KindIndex), flags, api.WriterOf("organization"))
	r.Handle(http.MethodDelete, record, t.record(core.KindRemove), flags, api.WriterOf("organization"))
	r.Handle(http.MethodPost, organization, t.run(core.ScopeOrganization, organizationTarget), flags, api.WriterOf("organization"))
	r.Handle(http.MethodPost, repository, t.run(core.ScopeRepository, repositoryTarget), flags, api.System())

	r.Handle(http.MethodPost, organization+"/ids", t.ids(organizationTarget), api.LenientParams(), api.WriterOf("organization"))
	r.Handle(http.MethodPost, repository+"/ids", t.ids(repositoryTarget), api.LenientParams(), api.System())

	b := rebuilds{port: s.ports.Rebuilds, basePath: r.BasePath()}
	r.Handle(http.MethodPost, repository+"/rollback", b.rollback, api.LenientParams(), api.System())
	r.Handle(http.MethodGet, repository+"/mapping", b.plan, api.LenientParams(), api.System())
	r.Handle(http.MethodDelete, repository+"/previous", b.dropPrevious, api.LenientParams(), api.System())

	r.Handle(http.MethodGet, "/repositories", repositories(s.ports.Repositories), api.AllowParams(), api.Token())

	j := jobs{
		port: s.ports.Jobs, organizations: s.ports.Organizations, lists: s.ports.Lists, events: s.ports.JobEvents, pauses: s.ports.Pauses, now: r.Now,
	}
	r.Handle(http.MethodGet, "/jobs", j.list, api.AllowParams("repository", "state", "limit", "cursor"), api.Token())
	r.Handle(http.MethodGet, "/jobs/{id}", j.get, api.AllowParams(), api.Token())
	r.Handle(http.MethodDelete, "/jobs/{id}", j.cancel, api.AllowParams(), api.Token())
	r.Handle(http.MethodGet, "/jobs/{id}/organizations", j.organizationPage, api.AllowParams("state", "limit", "cursor"), api.Token())
	r.HandleMedia(http.MethodGet, "/jobs/{id}/ids", []string{contentTypeNDJSON}, j.ids, api.AllowParams(), api.Token())
	r.HandleMedia(http.MethodGet, "/jobs/{id}/events", []string{contentTypeEvents}, j.stream, api.AllowParams("lastEventId"), api.Token())

	l := letters{port: s.ports.DeadLetters, retries: s.ports.Retries, basePath: r.BasePath()}
	r.HandleMedia(http.MethodGet, "/dead-letters", []string{media.JSON, contentTypeNDJSON}, l.list,
		api.AllowParams("repository", "organization", "reason", "limit", "cursor"), api.Token())
	r.Handle(http.MethodPost, "/dead-letters/retry", l.retryAll, api.AllowParams("repository", "organization", "reason"), api.System())
	r.Handle(http.MethodGet, "/dead-letters/{id}", l.get, api.AllowParams(), api.Token())
	r.Handle(http.MethodDelete, "/dead-letters/{id}", l.discard, api.AllowParams(), api.System())
	r.Handle(http.MethodPost, "/dead-letters/{id}/retry", l.retry, api.AllowParams(), api.Token())

	r.Handle(http.MethodPost, "/notifications/{repositoryCode}", notify(s.ports.Notifications), api.AllowParams(),
		api.Signed("repositoryCode", func(repository string) bool { return s.ports.Notifications.Signed(repository) }))
}
