package main

import "slices"

// mutations returns the seeded faults. Texts are short, so that they survive refactoring. When a text is no longer found, the table
// needs its new spelling, or an equivalent fault.
func mutations() []mutation {
	return slices.Concat(ingestMutations(), indexMutations(), searchMutations(), processMutations())
}

// ingestMutations returns the faults of the way of a change into the index.
func ingestMutations() []mutation {
	return []mutation{
		{
			id: "ack-before-outcome", folder: "consumers",
			find:     "rs, err := w.settle(ctx, m)",
			replace:  "_ = m.Ack(ctx)\n\trs, err := w.settle(ctx, m)",
			packages: []string{"./consumers/..."}, run: "TestRecord|TestUpstream|TestDeadLetterBeforeAck|TestPause",
		},
		{
			id: "ack-without-dead-letter", folder: "consumers",
			find:     ".StoreDeadLetter(ctx, req, letter); err != nil {",
			replace:  ".StoreDeadLetter(ctx, req, letter); err != nil && false {",
			packages: []string{"./consumers/..."}, run: "TestUpstreamRefusal|TestDeadLetter",
		},
		{
			id: "page-ends-with-unsettled-rows", folder: "consumers",
			find:     "readErr == nil && len(w.unsettled) == 0",
			replace:  "readErr == nil && len(w.unsettled) >= 0",
			packages: []string{"./consumers/..."}, run: "TestPage|TestStubbornDocument|TestPause|TestBodyTooOld|TestLate",
		},
		{
			id: "moved-record-is-written", folder: "consumers",
			find:     "rec.Organization != w.req.Organization",
			replace:  "false && rec.Organization != w.req.Organization",
			packages: []string{"./consumers/..."}, run: "TestRecordOfAnotherOrganizationOnAPage|TestMoved",
		},
		{
			id: "heartbeat-ends", folder: "consumers",
			find:     "_ = m.InProgress()",
			replace:  "_ = m",
			packages: []string{"./consumers/..."}, run: "TestProcessingLongerThanAckWait|TestSlow",
		},
		{
			id: "failed-changes-count-as-published", folder: "ingest",
			find:     "return r.send(ctx, c)",
			replace:  "_ = r.send(ctx, c); return nil",
			packages: []string{"./ingest"}, run: "Relay",
		},
		{
			id: "signature-is-not-compared", folder: "ingest",
			find:     "|| !hmac.Equal(mac, sum(secret, body))",
			replace:  "|| hmac.Equal(mac, nil)",
			packages: []string{"./ingest"}, run: "Sign|Notif",
		},
		{
			id: "failed-commit-is-forgotten", folder: "ingest/kafka",
			find:     "if err := r.client.CommitRecords(ctx, records...); err != nil {",
			replace:  "if err := r.client.CommitRecords(ctx, records...); err != nil && false {",
			packages: []string{"./ingest/kafka"}, run: "TestCommit",
		},
		{
			id: "republish-replaces-newer", folder: "internal/queue",
			find:     "jetstream.WithExpectLastSequencePerSubject(own.sequence)",
			replace:  "jetstream.WithExpectStream(streamRequests)",
			packages: []string{"./internal/queue"}, run: "Republish",
		},
		{
			id: "message-may-be-lost-with-power", folder: "internal/queue/embedded",
			find:     "SyncAlways:",
			replace:  "SyncAlways: false &&",
			packages: []string{"./internal/queue/embedded"}, run: "TestStartStop|TestRestart",
		},
		{
			id: "short-bulk-response-is-accepted", folder: "internal/index/bulk",
			find:     "len(results) != to-from",
			replace:  "len(results) > to-from",
			packages: []string{"./internal/index/bulk"},
		},
		{
			id: "overload-does-not-slow", folder: "internal/index/bulk",
			find:     "c.limit = max(1, c.limit/2)",
			replace:  "c.limit = max(1, c.limit)",
			packages: []string{"./internal/index/bulk"}, run: "TestConcurrency",
		},
		{
			id: "old-bodies-are-sent", folder: "internal/index/bulk",
			find:     "if s.b.meta[i].deadline > now {",
			replace:  "if s.b.meta[i].deadline > 0 {",
			packages: []string{"./internal/index/bulk"}, run: "TestTooOld",
		},
		{
			id: "removal-is-replaced", folder: "internal/core",
			find:     "case pending.Kind == KindRemove && (newer ||",
			replace:  "case pending.Kind == KindRemove && newer && (newer ||",
			packages: []string{"./internal/queue", "./consumers"}, run: "Removal|Offer",
		},
		{
			id: "unpublished-analyses-are-indexed", folder: "internal/upstream/song",
			find:     "record.Indexable = slices.Contains(c.states, record.State)",
			replace:  "record.Indexable = true",
			packages: []string{"./internal/upstream/song"},
		},
		{
			id: "missing-category-means-no-records", folder: "internal/upstream/lyric",
			find:     "Code: core.CodeUpstream, Message: \"the upstream has no such category",
			replace:  "Code: core.CodeAbsent, Message: \"the upstream has no such category",
			packages: []string{"./internal/upstream/lyric"},
		},
		{
			id: "cut-page-is-complete", folder: "internal/upstream",
			find:     "func (w *window) finish() error {",
			replace:  "func (w *window) finish() error {\n\tif w != nil {\n\t\treturn nil\n\t}",
			packages: []string{"./internal/upstream"}, run: "TestScanner",
		},
	}
}

// indexMutations returns the faults of engines, filters and storage.
func indexMutations() []mutation {
	return []mutation{
		{
			id: "validations-reach-private-hosts", folder: "schemas",
			find:     "|| a.IsPrivate() ||",
			replace:  "||",
			packages: []string{"./schemas/..."}, run: "Address",
		},
		{
			id: "slow-schema-is-not-quarantined", folder: "schemas",
			find:     "v.quarantine.add(ref)",
			replace:  "",
			packages: []string{"./schemas/..."}, run: "TestQuarantine",
		},
		{
			id: "change-without-event", folder: "internal/metadata",
			find:     "return true, r.writeEvent(ctx, tx, study, id)",
			replace:  "return true, nil",
			packages: []string{"./internal/metadata"}, run: "TestPublish|TestChanged|TestRelay",
		},
		{
			id: "unpublished-events-are-removed", folder: "internal/metadata",
			find:     "i < len(errs) && errs[i] == nil",
			replace:  "i < len(errs)",
			packages: []string{"./internal/metadata"}, run: "TestRelay",
		},
		{
			id: "failed-commit-succeeds", folder: "internal/store",
			find:     "if err := w.exec(\"COMMIT\"); err != nil {\n\t\tif w.succeeded() > 1",
			replace:  "if err := w.exec(\"COMMIT\"); err != nil && false {\n\t\tif w.succeeded() > 1",
			packages: []string{"./internal/store"},
		},
		{
			id: "large-bodies-exceed-the-memory", folder: "internal/base/budget",
			find:     "s.used+w.bytes > s.size",
			replace:  "w.bytes > s.size",
			packages: []string{"./internal/base/budget"},
		},
		{
			id: "nothing-becomes-everything", folder: "internal/filter/sqon",
			find:     "n.Op != And && nothing(member)",
			replace:  "nothing(member)",
			packages: []string{"./internal/filter/sqon"}, run: "Normal",
		},
		{
			id: "conjunction-ignores-nothing", folder: "internal/filter/query",
			find:     "return &Node{Op: final}",
			replace:  "return &Node{Op: none}",
			packages: []string{"./internal/filter/query"},
		},
		{
			id: "conflict-counts-as-written", folder: "internal/index/elastic/write",
			find:     "result.Outcome, result.CurrentVersion = core.OutcomeStale,",
			replace:  "result.Outcome, result.CurrentVersion = core.OutcomeIndexed,",
			packages: []string{"./internal/index/elastic"}, run: "Outcome|TestTruth|Result|Items",
		},
		{
			id: "writes-without-version-check", folder: "internal/index/elastic/write",
			find:     "\"version_type\":\"external_gte\"",
			replace:  "\"version_type\":\"internal\"",
			packages: []string{"./internal/index/elastic"},
		},
		{
			id: "older-version-wins", folder: "internal/index/embedded/indexfile",
			find:     "c.Version < version || c.Strict && c.Version == version",
			replace:  "c.Strict && c.Version == version",
			packages: []string{"./internal/index/embedded"}, run: "TestConformance",
		},
		{
			id: "damaged-segment-is-read", folder: "internal/index/embedded/segment/sectionfile",
			find:     "crc32.Checksum(f.rest[:end], crcTable()) != binary.LittleEndian.Uint32(trailer)",
			replace:  "crc32.Checksum(f.rest[:end], crcTable()) < 0",
			packages: []string{"./internal/index/embedded/segment/..."}, run: "TestRead",
		},
		{
			id: "range-includes-its-end", folder: "internal/index/embedded/evaluate",
			find:     "if o[0] < o[1] {",
			replace:  "if o[1]++; o[0] < o[1] {",
			packages: []string{"./internal/index/embedded/evaluate"}, run: "Range",
		},
	}
}

// searchMutations returns the faults of search and access.
func searchMutations() []mutation {
	return []mutation{
		{
			id: "any-token-writes-anywhere", folder: "http",
			find:     "caller, bound := RestrictedCaller(r); bound && !caller.MayWrite(organization)",
			replace:  "caller, bound := RestrictedCaller(r); bound && caller.ID == \"\"",
			packages: []string{"./http"}, run: "TestEveryRouteAsksForWhatItNeeds|TestRefusals",
		},
		{
			id: "dead-letters-of-others-are-visible", folder: "http",
			find:     "|| !caller.MayWrite(letter.Organization)",
			replace:  "",
			packages: []string{"./http"}, run: "See|Visib|Letter|Access",
		},
		{
			id: "slow-bodies-have-no-deadline", folder: "http",
			find:     "_ = b.control.SetReadDeadline(deadline)",
			replace:  "_ = deadline",
			packages: []string{"./http"}, run: "Pace|Slow|Half|Late",
		},
		{
			id: "tokens-for-other-services", folder: "internal/auth",
			find:     "if !cfg.AnyAudience {",
			replace:  "if false {",
			packages: []string{"./internal/auth"}, run: "TestClaims",
		},
		{
			id: "search-without-access-filter", folder: "internal/search/view",
			find:     "req.Filter = query.Both(v.granted, req.Filter)\n\t\tif",
			replace:  "if",
			packages: []string{"./internal/search/view"},
		},
		{
			id: "download-without-access-filter", folder: "internal/search/view",
			find:     "req.Filter = query.Both(v.granted, req.Filter)\n\tstart",
			replace:  "start",
			packages: []string{"./internal/search/view"},
		},
		{
			id: "access-by-normalized-values", folder: "internal/search/catalogue",
			find:     "return f.mapped == nil || f.mapped.Params[\"normalizer\"] == nil",
			replace:  "return true",
			packages: []string{"./internal/search/catalogue"},
		},
		{
			id: "depth-limit-is-ignored", folder: "internal/search/graphql",
			find:     "case one.depth > depth:",
			replace:  "case one.depth > maxDepth:",
			packages: []string{"./internal/search/graphql/..."}, run: "Depth",
		},
		{
			id: "large-pages-are-not-clamped", folder: "internal/search/graphql",
			find:     "r.Size = window",
			replace:  "r.Size += 0",
			packages: []string{"./internal/search/graphql/..."}, run: "Clamped|TestPages",
		},
		{
			id: "cells-run-formulas", folder: "internal/search/download",
			find:     "case '=', '@':",
			replace:  "case '@':",
			packages: []string{"./internal/search/download"}, run: "TestCells|TestFormats|Fuzz",
		},
		{
			id: "downloads-are-not-released", folder: "internal/search/download",
			find:     "p.add(accounts, -1)",
			replace:  "p.add(accounts, 0)",
			packages: []string{"./internal/search/download"},
		},
		{
			id: "slow-node-has-no-deadline", folder: "internal/search/federation",
			find:     "context.WithTimeoutCause(ctx, c.cfg.Timeout, errTimeout)",
			replace:  "context.WithCancel(ctx)",
			packages: []string{"./internal/search/federation"}, run: "TestSlowNode|TestErrorsOfNodes",
		},
		{
			id: "sets-of-others-are-found", folder: "internal/search/sets",
			find:     "\" FROM saved_set WHERE id = $1 AND owner = $2 AND",
			replace:  "\" FROM saved_set WHERE id = $1 AND (owner = $2 OR $2 <> '') AND",
			packages: []string{"./internal/search/sets"},
		},
	}
}

// processMutations returns the faults of the process and its clients.
func processMutations() []mutation {
	return []mutation{
		{
			id: "secrets-are-printed", folder: "internal/config",
			find:     "return []byte(s.String()), nil",
			replace:  "return []byte(s), nil",
			packages: []string{"./internal/config"},
		},
		{
			id: "stream-restarts-from-the-beginning", folder: "cmd/tutti/internal/client",
			find:     "lastEventID: w.lastID",
			replace:  "lastEventID: \"\"",
			packages: []string{"./cmd/tutti/internal/client"}, run: "TestWatchJob",
		},
		{
			id: "partial-job-exits-as-failed", folder: "cmd/tutti",
			find:     "e.code = exitPartial",
			replace:  "e.code = exitFailed",
			packages: []string{"./cmd/tutti"},
		},
		{
			id: "parts-stop-in-the-order-of-start", folder: "internal/base/cleanup",
			find:     "slices.Backward(steps)",
			replace:  "slices.All(steps)",
			packages: []string{"./internal/base/cleanup"},
		},
		{
			id: "failed-run-counts-as-filled", folder: "internal/core",
			find:     "j.State == JobSucceeded || j.State == JobPartial && j.Totals.Written()",
			replace:  "j.State == JobSucceeded || j.State.Final()",
			packages: []string{"./internal/app/housekeeping"}, run: "TestFillOf",
		},
	}
}
