package transport

import (
	"net/http"
	"strings"

	"tutti/internal/index/elastic/flavour"
)

// Texts before and after the names of the actions in the reason of an unprivileged request.
const (
	elasticsearchBefore, elasticsearchAfter = "action [", "] is unauthorized"
	openSearchBefore, openSearchAfter       = forbiddenReason, "] and "
)

// Unprivileged reports whether the cluster knows the user, who lacks a privilege. In a multi-get of status 200 an error of security is one
// of these.
func (f *ResponseError) Unprivileged() bool {
	return f.Type == TypeSecurity && f.Status != http.StatusUnauthorized
}

// UnprivilegedMessage returns the message of an Unprivileged error, with the actions that it names.
func (f *ResponseError) UnprivilegedMessage() string {
	if action, _ := f.refused(); action != "" {
		return unprivilegedMessage + ": the engine refuses " + action
	}
	return unprivilegedMessage
}

const unprivilegedMessage = "the user of the index lacks a privilege"

// PrivilegeHint returns how to grant what an Unprivileged error lacks, "" for other errors, or when the engine is not known by its reason.
func (f *ResponseError) PrivilegeHint() string {
	_, product := f.refused()
	engine, _, ok := flavour.Of(product, flavour.Version{})
	if !ok || !f.Unprivileged() {
		return ""
	}
	return engine.Privileges.Hint("each indexName and indexName-*")
}

// refused returns the actions that the reason names, as one text, and whose reason it is.
func (f *ResponseError) refused() (action string, product flavour.Product) {
	between := func(before, after string) string {
		_, rest, found := strings.Cut(f.Reason, before)
		action, _, ended := strings.Cut(rest, after)
		if !found || !ended || len(action) > maxActionBytes {
			return ""
		}
		return action
	}
	if action = between(elasticsearchBefore, elasticsearchAfter); action != "" {
		return action, flavour.Elasticsearch
	}
	if action = between(openSearchBefore, openSearchAfter); action != "" {
		return action, flavour.OpenSearch
	}
	return "", ""
}

// maxActionBytes bounds the names of actions in a message.
const maxActionBytes = 256
