// Package interrupt kills move-hook at a chosen write and runs it again, and says
// what became of it. Its own tests do so on two bare API servers, at every write;
// those of package scenario do so where upstream's controllers run.
package interrupt
