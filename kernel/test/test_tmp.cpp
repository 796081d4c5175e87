#include "kernel/test/test.hpp"
#include "kernel/text.hpp"
#include <cstdarg>
namespace spinkick::test {
#define F(n,st) void TestContext::n(const char* f, ...) noexcept { char b[200]; TextBuffer t(b); std::va_list a; va_start(a,f); vformat(t,f,a); va_end(a); report(Status::st,b); }
F(skip,skip) F(error,error) F(fail,fail)
void TestContext::report(Status s, const char* r) noexcept { if (s>status_) { status_=s; for (unsigned i=0;i<199&&r[i];i++) reason_[i]=r[i]; } }
}
