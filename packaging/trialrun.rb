# Template of the Homebrew formula. `scripts/homebrew-formula` replaces the words in capital letters.
class Trialrun < Formula
  desc "Test AI agents, agent skills and prompts end to end"
  homepage "REPOSITORY"
  version "VERSION"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "REPOSITORY/releases/download/vVERSION/trialrun-aarch64-apple-darwin.tar.gz"
      sha256 "CHECKSUM"
    end
    on_intel do
      url "REPOSITORY/releases/download/vVERSION/trialrun-x86_64-apple-darwin.tar.gz"
      sha256 "CHECKSUM"
    end
  end

  on_linux do
    on_arm do
      url "REPOSITORY/releases/download/vVERSION/trialrun-aarch64-unknown-linux-musl.tar.gz"
      sha256 "CHECKSUM"
    end
    on_intel do
      url "REPOSITORY/releases/download/vVERSION/trialrun-x86_64-unknown-linux-musl.tar.gz"
      sha256 "CHECKSUM"
    end
  end

  def install
    bin.install "trialrun"
    generate_completions_from_executable(bin/"trialrun", "completions")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/trialrun --version")
  end
end
