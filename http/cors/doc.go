// Package cors decides what pages of other origins may do with the API: the CORS protocol of the Fetch standard, and the check of
// requests that change something. It must not import http/api, which applies it to all routes.
package cors
