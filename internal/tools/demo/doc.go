// Package demo runs tutti with embedded defaults against its own repositories, to show the main functions to a new user. It uses the app
// over HTTP, like any client.
package demo
