// Package browser holds tests of the admin page in a real browser: Chromium shows the pages of a real HTTP server,
// with their scripts, and the tests read the document, press keys and wait for live updates. Without Chromium they
// fail.
//
// Tests of the pages' HTML are in package web.
package browser
