#include "memory/index/stop_words.h"

#include <algorithm>
#include <array>

namespace kvasir::index {
namespace {

// Sorted. Articles, pronouns, prepositions, conjunctions, auxiliaries, their contractions, and the
// words with which people ask a chat for something.
constexpr auto kStopWords = std::to_array<std::string_view>(
    {"a",      "about",   "after",  "again",   "all",    "also",   "am",      "an",       "and",
     "any",    "are",     "aren't", "as",      "at",     "be",     "because", "been",     "before",
     "being",  "but",     "by",     "can",     "can't",  "cannot", "could",   "couldn't", "did",
     "didn't", "do",      "does",   "doesn't", "doing",  "don't",  "for",     "from",     "had",
     "has",    "hasn't",  "have",   "haven't", "having", "he",     "he's",    "her",      "here",
     "hers",   "hi",      "him",    "his",     "how",    "i",      "i'd",     "i'll",     "i'm",
     "i've",   "if",      "in",     "into",    "is",     "isn't",  "it",      "it's",     "its",
     "just",   "let's",   "me",     "my",      "no",     "not",    "of",      "oh",       "ok",
     "okay",   "on",      "or",     "our",     "ours",   "out",    "please",  "she",      "she's",
     "should", "so",      "some",   "than",    "that",   "that's", "the",     "their",    "theirs",
     "them",   "then",    "there",  "there's", "these",  "they",   "they're", "this",     "those",
     "to",     "too",     "up",     "us",      "very",   "was",    "wasn't",  "we",       "we're",
     "were",   "weren't", "what",   "what's",  "when",   "where",  "which",   "while",    "who",
     "who's",  "whom",    "why",    "will",    "with",   "won't",  "would",   "wouldn't", "yes",
     "you",    "you're",  "you've", "your",    "yours"});
static_assert(std::ranges::is_sorted(kStopWords));

}  // namespace

bool IsStopWord(std::string_view word) { return std::ranges::binary_search(kStopWords, word); }

}  // namespace kvasir::index
