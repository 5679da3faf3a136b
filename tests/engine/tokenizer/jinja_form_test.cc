// The form of a template: spellings that mean the same are equal, everything else differs.
#include "engine/tokenizer/jinja_form.h"

#include <gtest/gtest.h>

namespace kvasir::tokenizer {
namespace {

base::Digest Form(std::string_view jinja) {
  const auto form = FormOf(jinja);
  EXPECT_TRUE(form.ok()) << form.status();
  return form.ok() ? form->digest : base::Digest{};
}

TEST(JinjaForm, SpellingDoesNotCount) {
  const base::Digest form = Form("{% if a['x'] %}{{ 'p' + \"q\\n\" }}{% endif %}");
  EXPECT_EQ(Form("{%if  a.x%}{{'pq\n'}}{%endif%}"), form) << "spaces, quotes, newline, subscript";
  EXPECT_EQ(Form("{%- if a.x -%}\n  {{- 'pq\\n' }}\n{%- endif %}\n"), form) << "cut white space";
  EXPECT_EQ(Form("{# about #}{% if a.x %}\n  {% endif %}"), Form("{% if a.x %}{% endif %}"))
      << "trim_blocks, lstrip_blocks, comments";
}

TEST(JinjaForm, MeaningCounts) {
  const base::Digest form = Form("{{ a.x + 'q' }}");
  EXPECT_NE(Form("{{ a.y + 'q' }}"), form);
  EXPECT_NE(Form("{{ a.x + 'r' }}"), form);
  EXPECT_NE(Form("{{ a.x + q }}"), form);
  EXPECT_NE(Form("{% a.x + 'q' %}"), form);
  EXPECT_NE(Form("{{ a.x + 'q' }} "), form) << "text outside tags";
  EXPECT_NE(Form("{{ a.x | trim + 'q' }}"), form);
  EXPECT_NE(Form("{{ 'a' + 'b' | trim }}"), Form("{{ 'ab' | trim }}"))
      << "the filter binds tighter";
}

TEST(JinjaForm, TheDefaultSystemMessageIsTakenOut) {
  const auto one = FormOf("{{ '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}{{ 'Be kind.' }}");
  const auto two = FormOf("{{ '<|im_start|>system\\nBe brief.<|im_end|>\\n' }}{{ 'Be brief.' }}");
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->digest, two->digest);
  EXPECT_EQ(one->default_system, "Be kind.");
  EXPECT_EQ(two->default_system, "Be brief.");
  const auto differ = FormOf("{{ '<|im_start|>system\\nBe kind.<|im_end|>\\n' }}{{ 'Be brief.' }}");
  ASSERT_TRUE(differ.ok());
  EXPECT_NE(differ->digest, one->digest) << "two messages are not one default";
}

TEST(JinjaForm, WhatDoesNotEndIsRefused) {
  for (const std::string_view jinja : {"{{ a", "{% if", "{{ 'a }}", "{# a", "{{ 'a\\"})
    EXPECT_EQ(FormOf(jinja).status().code(), absl::StatusCode::kInvalidArgument) << jinja;
  EXPECT_FALSE(FormOf(std::string(JinjaForm::kTemplateBytesMax + 1, 'x')).ok());
}

}  // namespace
}  // namespace kvasir::tokenizer
