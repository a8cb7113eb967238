// Package apitest has what the tests of the HTTP surfaces share: a Router of all surfaces on ports that all succeed, of which a test replaces
// some; requests whose answers are held against the OpenAPI document (Do); tokens of callers with rights; catalogues, searches, streams of events.
// Each surface's tests are in its folder. What one folder alone needs is there.
package apitest
