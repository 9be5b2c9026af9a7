//! The API as clients see it: a real server on a socket of its own, a real store, and an engine that launches nothing.

mod bridge;
mod events;
mod fairness;
mod lab;
mod logs;
mod network;
mod old_store;
mod pages;
mod requests;
mod strangers;
