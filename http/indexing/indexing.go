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
	r.Handle(http.MethodGet, record, trace(s.ports.Traces), api.LenientParams(), api.WriterOf("organization"))
	r.Handle(http.MethodPost, record, t.record(core.KindIndex), api.LenientParams(), api.WriterOf("organization"))
	r.Handle(http.MethodDelete, record, t.record(core.KindRemove), api.LenientParams(), api.WriterOf("organization"))
	r.Handle(http.MethodPost, organization, t.run(core.ScopeOrganization, organizationTarget), api.LenientParams(), api.WriterOf("organization"))
	r.Handle(http.MethodPost, repository, t.run(core.ScopeRepository, repositoryTarget), api.LenientParams(), api.System())

	r.Handle(http.MethodPost, organization+"/ids", t.ids(organizationTarget), api.LenientParams(), api.WriterOf("organization"))
	r.Handle(http.MethodPost, repository+"/ids", t.ids(repositoryTarget), api.LenientParams(), api.System())

	b := rebuilds{port: s.ports.Rebuilds, basePath: r.BasePath()}
	r.Handle(http.MethodPost, repository+"/rollback", b.rollback, api.LenientParams(), api.System())
	r.Handle(http.MethodGet, repository+"/mapping", b.plan, api.LenientParams(), api.System())
	r.Handle(http.MethodDelete, repository+"/previous", b.dropPrevious, api.LenientParams(), api.System())

	r.Handle(http.MethodGet, "/repositories", repositories(s.ports.Repositories), api.StrictParams(), api.Token())

	j := jobs{
		port: s.ports.Jobs, organizations: s.ports.Organizations, lists: s.ports.Lists, events: s.ports.JobEvents, pauses: s.ports.Pauses, now: r.Now,
	}
	r.Handle(http.MethodGet, "/jobs", j.list, api.StrictParams(), api.Token())
	r.Handle(http.MethodGet, "/jobs/{id}", j.get, api.StrictParams(), api.Token())
	r.Handle(http.MethodDelete, "/jobs/{id}", j.cancel, api.StrictParams(), api.Token())
	r.Handle(http.MethodGet, "/jobs/{id}/organizations", j.organizationPage, api.StrictParams(), api.Token())
	r.HandleMedia(http.MethodGet, "/jobs/{id}/ids", []string{contentTypeNDJSON}, j.ids, api.StrictParams(), api.Token())
	r.HandleMedia(http.MethodGet, "/jobs/{id}/events", []string{contentTypeEvents}, j.stream, api.StrictParams(), api.Token())

	l := letters{port: s.ports.DeadLetters, retries: s.ports.Retries, basePath: r.BasePath()}
	r.HandleMedia(http.MethodGet, "/dead-letters", []string{media.JSON, contentTypeNDJSON}, l.list, api.StrictParams(), api.Token())
	r.Handle(http.MethodPost, "/dead-letters/retry", l.retryAll, api.StrictParams(), api.System())
	r.Handle(http.MethodGet, "/dead-letters/{id}", l.get, api.StrictParams(), api.Token())
	r.Handle(http.MethodDelete, "/dead-letters/{id}", l.discard, api.StrictParams(), api.System())
	r.Handle(http.MethodPost, "/dead-letters/{id}/retry", l.retry, api.StrictParams(), api.Token())

	r.Handle(http.MethodPost, "/notifications/{repositoryCode}", notify(s.ports.Notifications), api.StrictParams(),
		api.Signed("repositoryCode", func(repository string) bool { return s.ports.Notifications.Signed(repository) }))
}
