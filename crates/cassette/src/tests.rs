mod drift;
mod file;
mod stream;
